"""What consumers see while a test goes on: when each firing arrived, and how long each command took to be answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import KafkaError, Message, Producer

from light_scheduler.bench.chaos.checker.records import Record
from light_scheduler.bench.chaos.live import LiveReader
from light_scheduler.clock import SystemClock

from .reading import header
from .waiting import eventually

AN_HOUR_MS = 3_600_000
SILENT = logging.Logger("support", logging.CRITICAL + 1)
"""librdkafka reports each connection that breaks: brokers that are away are what tests are about."""


class Arrival(NamedTuple):
    """A firing in a read_committed consumer's hands; instants are UTC epoch ms."""

    id: str
    due: int
    fired_at: int
    attempt: str | None
    at: int
    record: Record

    @property
    def lateness(self) -> int:
        return self.at - self.due


class Arrivals(LiveReader):
    """Reads topics of firings in a thread. `seen` holds their arrivals by topic, in order within partitions."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        topics = list(topics)
        super().__init__(bootstrap_servers, topics)
        self.seen: dict[str, list[Arrival]] = {topic: [] for topic in topics}

    def take(self, record: Record, now: int, /) -> None:
        """Note a firing; other records, such as probes, are none."""
        if (id := header(record, "schedule-id")) is None:
            return
        due, fired_at = (int(header(record, f"schedule-{name}") or 0) for name in ("due", "fired-at"))
        self.seen[record.topic].append(Arrival(id, due, fired_at, header(record, "schedule-attempt"), now, record))

    async def await_count(self, topic: str, count: int, timeout: float) -> None:
        """Return when so many firings of a topic have arrived, or when the time (s) is over."""
        with contextlib.suppress(TimeoutError):
            await eventually(lambda: len(self.seen[topic]) >= count, within=timeout)


class Asked(NamedTuple):
    """A command of an `Asker`: when it was sent, and when its answer came (UTC epoch ms), if it did."""

    sent_at: int
    answered_at: int | None

    @property
    def took(self) -> int | None:
        return None if self.answered_at is None else self.answered_at - self.sent_at


class Asker(LiveReader):
    """Sends a command for a schedule an hour ahead every `pause_s`, and reads the answers. A context manager.

    The schedules are called `{name}-{number}`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        commands: str,
        results: str,
        target: str,
        *,
        name: str = "asked",
        pause_s: float = 0.25,
    ) -> None:
        super().__init__(bootstrap_servers, [results])
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 200,  # a topic may grow meanwhile
                "request.timeout.ms": 2_000,
                "socket.timeout.ms": 3_000,
            },
            logger=SILENT,
        )
        self._commands, self._results, self._target = commands, results, target
        self._name, self._pause_s = name, pause_s
        self._sent: dict[str, int] = {}
        self._answered: dict[str, int] = {}
        self.partitions: set[int] = set()
        """Those that have taken a command."""
        self._ending = threading.Event()
        self._asking = threading.Thread(target=self._ask, name="Asker", daemon=True)
        self._now: Callable[[], int] = SystemClock().now

    @property
    def asked(self) -> list[Asked]:
        """The commands so far."""
        return [Asked(at, self._answered.get(name)) for name, at in list(self._sent.items())]

    def take(self, record: Record, now: int, /) -> None:
        """Note an answer."""
        name = header(record, "schedule-correlation-id")
        if name is not None:
            self._answered.setdefault(name, now)

    async def await_answers(self, timeout: float) -> None:
        """End the asking, and return when every command is answered. Raises TimeoutError."""
        await asyncio.to_thread(self._end_asking)
        await eventually(lambda: all(asked.answered_at is not None for asked in self.asked), within=timeout)

    def __enter__(self) -> Self:
        super().__enter__()
        self._asking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end_asking()
        super().__exit__(kind, error, traceback)

    def _end_asking(self) -> None:
        self._ending.set()
        self._asking.join()

    def _ask(self) -> None:
        number = 0
        while not self._ending.wait(self._pause_s):
            number += 1
            name = f"{self._name}-{number}"
            self._sent[name] = self._now()
            headers = {
                "schedule-after": str(AN_HOUR_MS),
                "schedule-target-topic": self._target,
                "schedule-reply-topic": self._results,
                "schedule-correlation-id": name,
            }
            self._producer.produce(
                self._commands, b"", name, headers=list(headers.items()), on_delivery=self._delivered
            )
            self._producer.poll(0)
        self._producer.flush()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None and (partition := message.partition()) is not None:
            self.partitions.add(partition)
