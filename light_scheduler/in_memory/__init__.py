"""The scheduler without Kafka: real commands, decisions, state and records, over topics that live in this process.

Not simulated are rate caps, unavailable targets, failures and several workers: those belong to what is left out.
"""

from .broker import MemoryBroker
from .scheduler import MemoryScheduler

__all__ = ["MemoryBroker", "MemoryScheduler"]
