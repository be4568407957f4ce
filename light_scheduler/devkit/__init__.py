"""A real Kafka from pip alone, for development, demonstrations and tests.

Not for production: one machine, bound to the loopback address, without authentication unless configured (`listeners`).
"""

from .broker import EmbeddedBroker, JavaStart
from .cluster import EmbeddedCluster
from .leash import Leash
from .properties import FurtherPorts
from .startup_cache import keep_startup

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "FurtherPorts", "JavaStart", "Leash", "keep_startup"]
