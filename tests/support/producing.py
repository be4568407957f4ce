"""A producer in memory: what is sent to it can be read back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import RecordMetadata, TopicPartition

from light_scheduler.model import Headers


class Sent(NamedTuple):
    """A record as it was sent."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


class FakeProducer:
    """Takes batches as aiokafka's producer does; `refuse` returns the error of a topic, if it has one.

    With `holds` answers are given by `answer` only.
    """

    def __init__(self) -> None:
        self.batches: list[tuple[tuple[str, int], bytes]] = []
        self.records: list[Sent] = []
        self.refuse: Callable[[str, list[Sent]], Exception | None] = lambda topic, records: None
        self.holds = False
        self.waiting: list[tuple[asyncio.Future[RecordMetadata], RecordMetadata | Exception]] = []
        self.ends: Counter[tuple[str, int]] = Counter()

    async def send_batch(self, builder: BatchBuilder, topic: str, *, partition: int) -> asyncio.Future[RecordMetadata]:
        data = bytes(builder._build())
        records = [
            Sent(topic, partition, record.key, record.value, list(record.headers), record.timestamp)
            for record in MemoryRecords(data).next_batch()
        ]
        answer: RecordMetadata | Exception | None = self.refuse(topic, records)
        if answer is None:
            self.batches.append(((topic, partition), data))
            self.records += records
            offset = self.ends[topic, partition]
            self.ends[topic, partition] += len(records)
            answer = RecordMetadata(topic, partition, TopicPartition(topic, partition), offset, 0, 0, 0)
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        self.waiting.append((future, answer))
        if not self.holds:
            self.answer()
        return future

    def answer(self) -> None:
        """Give the answers that wait."""
        for future, answer in self.waiting:
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self.waiting.clear()

    def to(self, topic: str) -> list[Sent]:
        """Return what a topic was sent."""
        return [record for record in self.records if record.topic == topic]
