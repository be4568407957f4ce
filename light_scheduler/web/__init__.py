"""HTTP: look at schedules from any worker for the whole cluster, and at the worker itself.

`attach` serves it from a Faust app's web server; `cluster` says what it needs of the worker.
"""

from .assigned_peers import AssignedPeers
from .attachment import attach, faust_options, install
from .cluster import Lanes, Peers
from .handlers import Worker

__all__ = ["AssignedPeers", "Lanes", "Peers", "Worker", "attach", "faust_options", "install"]
