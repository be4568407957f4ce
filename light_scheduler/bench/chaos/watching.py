"""The consumer that looks whether any message can be read before it is due.

A transaction may be filled before the instant at which it is committed, so the time at which a record got into the log
says nothing. What a read_committed consumer has in its hands was visible by then: if that is before due, it was early.
"""

from __future__ import annotations

from collections.abc import Iterable

from .checker import Fault, Record, early
from .live import LiveReader


class Watcher(LiveReader):
    """Reads target topics; `faults` are what it found."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        super().__init__(bootstrap_servers, topics)
        self.faults: list[Fault] = []

    def take(self, record: Record, now: int, /) -> None:
        """Note a record that is not due yet."""
        fault = early(record, now)
        if fault is not None:
            self.faults.append(fault)
