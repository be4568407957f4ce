"""A real Kafka from pip alone, for development, demonstrations and tests.

Not for production: one machine, no authentication, bound to the loopback address.
"""

from .broker import EmbeddedBroker
from .cluster import EmbeddedCluster
from .leash import Leash

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "Leash"]
