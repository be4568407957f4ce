"""The scheduler without Kafka: real commands, decisions, state and records, with topics in this process.

Rate caps, unavailable targets, failures and several workers are not simulated.
"""

from .broker import MemoryBroker
from .scheduler import MemoryScheduler

__all__ = ["MemoryBroker", "MemoryScheduler"]
