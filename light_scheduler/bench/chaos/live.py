"""A consumer that reads in its own thread during a run."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from light_scheduler.clock import SystemClock

from .checker import Record
from .reading import places, reader, record_of

_AT_ONCE = 1_000
_WAIT_S = 0.02


class LiveReader(ABC):
    """Reads committed records of topics from their beginning. A context manager; leaving it ends the reading."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topics = list(topics)
        self._clock = SystemClock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    @abstractmethod
    def take(self, record: Record, now: int, /) -> None:
        """Process a record that was received at `now` (UTC epoch ms). Called in the reader's thread."""

    def _run(self) -> None:
        consumer = reader(self._bootstrap_servers)
        consumer.assign([place for topic in self._topics for place in places(consumer, topic)])
        while not self._stopping.is_set():
            messages = consumer.consume(_AT_ONCE, _WAIT_S)
            now = self._clock.now()
            for message in messages:
                if message.error() is None:
                    self.take(record_of(message), now)
        consumer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
