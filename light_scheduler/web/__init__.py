"""HTTP: look at schedules from any worker for the whole cluster, and at the worker itself.

`attach` serves it from a Faust app's web server; `cluster` says what it needs of the worker.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .assigned_peers import AssignedPeers
    from .attachment import attach, faust_options, install
    from .cluster import Lanes, Peers
    from .worker import Worker

__all__ = ["AssignedPeers", "Lanes", "Peers", "Worker", "attach", "faust_options", "install"]

__getattr__ = lazy_names(
    __name__,
    {
        "assigned_peers": ("AssignedPeers",),
        "attachment": (
            "attach",
            "faust_options",
            "install",
        ),
        "cluster": (
            "Lanes",
            "Peers",
        ),
        "worker": ("Worker",),
    },
)
