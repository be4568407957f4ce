"""Topics in memory: logs of records by partition, and each topic's properties as a target."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from aiokafka.record.memory_records import MemoryRecords

from light_scheduler.kafka.topic_facts import TargetTopic, refused
from light_scheduler.model import Headers
from light_scheduler.model.place import Place
from light_scheduler.model.topic_configuration import TopicConfiguration

_LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class Record(NamedTuple):
    """A record as a consumer reads it. `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class _Batch(NamedTuple):
    """A record batch of one partition, which is built only when it is read. `start` is the offset of its first
    record."""

    place: Place
    start: int
    build: Callable[[], bytes]


class MemoryBroker:
    """Topics by name and number of partitions: the application's `own`, and `topics`; None: any topic exists, with
    `partitions` partitions.

    Of topics in `unread` nothing is kept but how long they are. It serves cycles as `TopicFacts`: a topic is known
    without being asked for.
    """

    def __init__(
        self,
        own: Mapping[str, int],
        topics: Mapping[str, int] | None,
        partitions: int,
        unread: Collection[str] = (),
    ) -> None:
        self._partitions = partitions
        self._topics = topics
        self._own = own
        self._unread = frozenset(unread)
        self._facts: dict[str, TargetTopic] = {}
        self._logs: dict[Place, list[Record]] = defaultdict(list)
        self._ends: dict[Place, int] = defaultdict(int)
        self._batches: list[_Batch] = []
        self._read: list[Record] = []
        self._waiting: list[asyncio.Future[None]] = []

    def __getitem__(self, topic: str) -> TargetTopic:
        """Return a topic as a target, with the reason if it cannot be written to."""
        facts = self._facts.get(topic)
        if facts is None:
            facts = self._facts[topic] = self._facts_of(topic)
        return facts

    @property
    def records(self) -> list[Record]:
        """All kept records of all topics, in the order of writing."""
        self._read_batches()
        return self._read

    def log(self, place: Place) -> list[Record]:
        """Return the records of a partition. Their indexes are their offsets."""
        self._read_batches()
        return self._logs[place]

    def end(self, place: Place) -> int:
        """Return the offset after the last record of a partition."""
        return self._ends[place]

    def append(self, place: Place, key: bytes | None, value: bytes | None, headers: Headers, timestamp: int) -> int:
        """Write one record. Return its offset. `timestamp` is UTC epoch ms."""
        self._read_batches()
        offset = self._ends[place]
        self._keep(Record(*place, offset, timestamp, key, value, list(headers)))
        self._ends[place] = offset + 1
        self._wake()
        return offset

    def append_batch(self, place: Place, build: Callable[[], bytes], count: int) -> None:
        """Write a record batch with `count` records."""
        if place[0] not in self._unread:
            self._batches.append(_Batch(place, self._ends[place], build))
        self._ends[place] += count
        self._wake()

    async def written(self) -> None:
        """Return when something has been written after this call."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _facts_of(self, topic: str) -> TargetTopic:
        if _LEGAL_NAME.fullmatch(topic) is None:
            return refused(f"{topic} is not a legal topic name", 0.0)
        others = {topic: self._partitions} if self._topics is None else self._topics
        partitions = self._own.get(topic) or others.get(topic)
        if partitions is None:
            return refused(f"topic {topic} does not exist", 0.0)
        return TargetTopic(partitions, TopicConfiguration().max_message_bytes, None, 0.0)

    def _read_batches(self) -> None:
        batches, self._batches = self._batches, []
        for batch in batches:
            for record in _unpacked(batch):
                self._keep(record)

    def _keep(self, record: Record) -> None:
        self._logs[record.topic, record.partition].append(record)
        self._read.append(record)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _unpacked(batch: _Batch) -> Iterator[Record]:
    records = MemoryRecords(batch.build()).next_batch()
    assert records is not None
    for number, sent in enumerate(records):
        yield Record(*batch.place, batch.start + number, sent.timestamp, sent.key, sent.value, list(sent.headers))
