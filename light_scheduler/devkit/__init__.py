"""A real Kafka from pip alone, for development, demonstrations and tests.

Not for production: one machine, bound to the loopback address, without authentication unless it is asked for
(`listeners`).
"""

from .broker import EmbeddedBroker
from .cluster import EmbeddedCluster
from .leash import Leash

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "Leash"]
