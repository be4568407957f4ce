"""A real single-node Kafka from pip alone, for development, demonstrations and tests.

Not for production: one node, no replication, no authentication, bound to the loopback address.
"""

from .broker import EmbeddedBroker
from .leash import Leash

__all__ = ["EmbeddedBroker", "Leash"]
