"""The topics of a cluster, in memory: those that are looked back through, and those that are followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext

from light_scheduler.clock import SettableClock
from light_scheduler.kafka import compacted
from light_scheduler.kafka.atomic_writer import NewRecord
from light_scheduler.kafka.compacted import Change
from light_scheduler.kafka.log_reader import Span
from light_scheduler.model import Headers
from light_scheduler.model.place import Place
from light_scheduler.web.looking_back import Waiting
from light_scheduler.wire import CommandRecord, UnsentRecord

from .schedules import NOW

HISTORY = "light-scheduler-history"


class MemoryLog:
    """The idempotency topic of a cluster."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.records: list[UnsentRecord] = []
        self.failure: Exception | None = None
        self._added: set[asyncio.Event] = set()

    def add(self, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Append a record and return its offset."""
        offset = len(self.records)
        self.records.append(UnsentRecord(key, value, headers, self._clock.now(), 0, offset))
        for event in self._added:
            event.set()
        return offset

    def follow(self) -> MemoryFollowed:
        event = asyncio.Event()
        self._added.add(event)
        return MemoryFollowed(self, event)


class MemoryFollowed:
    """One reader of a `MemoryLog`."""

    def __init__(self, log: MemoryLog, added: asyncio.Event) -> None:
        self._log = log
        self._added = added

    async def __aiter__(self) -> AsyncIterator[CommandRecord]:
        place = 0
        while True:
            if self._log.failure is not None:
                raise self._log.failure
            while place < len(self._log.records):
                yield self._log.records[place]
                place += 1
            self._added.clear()
            await self._added.wait()

    async def close(self) -> None:
        pass


class MemoryTopics:
    """The topics of a cluster that are looked back through; each has two partitions."""

    def __init__(self) -> None:
        self.records: dict[str, list[list[UnsentRecord]]] = {}
        self.failure: Exception | None = None
        self.write_failure: Exception | None = None
        self.partitions: dict[str, int] = {}
        self.counted = 0
        """How often it was asked how many partitions the topics have."""
        self.answer: asyncio.Event | None = None
        """Says when that is answered."""
        self.read = 0
        """How many records have been read."""

    def add(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        *,
        partition: int = 0,
        at: int = NOW,
    ) -> int:
        """Append a record of an instant and return its offset."""
        records = self.records.setdefault(topic, [[], []])[partition]
        records.append(UnsentRecord(key, value, headers or [], at, partition, len(records)))
        return len(records) - 1

    async def write(self, records: Sequence[NewRecord]) -> list[tuple[Place, int]]:
        if (failure := self.failure or self.write_failure) is not None:
            raise failure
        written: list[tuple[Place, int]] = []
        for each in records:
            partition = each.partition_of(2)
            offset = self.add(each.topic, each.key, each.value, each.headers, partition=partition)
            written.append(((each.topic, partition), offset))
        return written

    @asynccontextmanager
    async def open(self, topic: str) -> AsyncIterator[MemoryTopics.Log]:
        if self.failure is not None:
            raise self.failure
        yield self.Log(self, self.records.get(topic, [[], []]))

    async def close(self) -> None:
        """Nothing is kept."""

    async def count_partitions(self) -> Mapping[str, int]:
        self.counted += 1
        if self.answer is not None:
            await self.answer.wait()
        if self.failure is not None:
            raise self.failure
        return self.partitions

    class Log:
        """One of the topics."""

        def __init__(self, topics: MemoryTopics, partitions: list[list[UnsentRecord]]) -> None:
            self._topics = topics
            self._partitions = partitions

        async def extents(self, since: int) -> dict[int, Span]:
            return {
                number: Span(next((each.offset for each in records if each.timestamp >= since), end), end)
                for number, records in enumerate(self._partitions)
                for end in [records[-1].offset + 1 if records else 0]
            }

        async def read(
            self, spans: Mapping[int, Span], waiting: Waiting = nullcontext
        ) -> AsyncIterator[Sequence[CommandRecord]]:
            with waiting():
                await asyncio.sleep(0)
            for partition, span in spans.items():
                log = self._partitions[partition]
                begin = log[0].offset if log else 0
                records = log[span.start - begin : span.end - begin]
                self._topics.read += len(records)
                yield records


class MemoryTopic:
    """The tenants topic of a cluster; `topics` have its history."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics
        self.entries: dict[bytes, bytes] = {}
        self.is_loaded = True
        self.failure: Exception | None = None
        self.changed: list[Callable[[], None]] = []

    async def follow(self, changed: Callable[[], None]) -> None:
        self.changed.append(changed)
        changed()

    async def write_all(self, records: Iterable[compacted.Record]) -> None:
        if self.failure is not None:
            raise self.failure
        self.entries |= {key: value for key, value in records if value is not None}  # stores remove nothing
        for changed in self.changed:
            changed()

    async def change(self, make: Callable[[], Change]) -> None:
        entries, told = make()
        await self.write_all(entries)
        if told is not None:
            self._topics.add(HISTORY, *told)
