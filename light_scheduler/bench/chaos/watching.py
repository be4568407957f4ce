"""The consumer that checks whether any message can be read before it is due.

A transaction may be filled before the instant of its commit, so the time of a record in the log proves nothing. A
record was visible when a read_committed consumer received it: if that is before its due time, it was early.
"""

from __future__ import annotations

from collections.abc import Iterable

from .checker import Fault, Record, early
from .live import LiveReader


class Watcher(LiveReader):
    """Reads target topics. `faults` are its findings."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        super().__init__(bootstrap_servers, topics)
        self.faults: list[Fault] = []

    def take(self, record: Record, now: int, /) -> None:
        """Record a fault if the record is not due yet."""
        fault = early(record, now)
        if fault is not None:
            self.faults.append(fault)
