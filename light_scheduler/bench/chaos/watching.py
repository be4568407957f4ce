"""The consumer that looks whether any message can be read before it is due.

A transaction may be filled before the instant at which it is committed, so the time at which a record got into the log
says nothing. What a read_committed consumer has in its hands was visible by then: if that is before due, it was early.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from light_scheduler.clock import SystemClock

from .checker import Fault, Record, early
from .reading import places, reader, record_of


class Watcher:
    """Reads topics while a run goes on. A context manager; `faults` are what it found."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        self.faults: list[Fault] = []
        self._bootstrap_servers = bootstrap_servers
        self._topics = list(topics)
        self._clock = SystemClock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching", daemon=True)

    def _run(self) -> None:
        consumer = reader(self._bootstrap_servers)
        consumer.assign([place for topic in self._topics for place in places(consumer, topic)])
        while not self._stopping.is_set():
            messages = consumer.consume(1_000, 0.02)
            now = self._clock.now()
            for message in messages:
                if message.error() is None:
                    self._look(record_of(message), now)
        consumer.close()

    def _look(self, record: Record, now: int) -> None:
        fault = early(record, now)
        if fault is not None:
            self.faults.append(fault)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
