"""Records for delay rules, and what has to hold of them once they are forwarded."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import ConsumerStoppedError

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer

from .reading import Record, committed_reader
from .waiting import eventually

Headers = list[tuple[str, bytes | None]]


def headers_of(number: int) -> Headers:
    """Headers with a name that repeats, a null, an empty value, and bytes that are no text."""
    return [
        ("n", b"%d" % number),
        ("n", b"again"),
        ("none", None),
        ("empty", b""),
        ("größe", bytes([number % 256, 255])),
    ]


def value_of(number: int) -> bytes | None:
    return None if number % 97 == 0 else b"value-%d" % number


def key_of(number: int) -> bytes | None:
    is_null = number % 89 == 0 and value_of(number) is not None
    return None if is_null else b"key-%d" % (number % 1_000)


async def produce(bootstrap_servers: str, topic: str, numbers: range, partitions: int, per_second: int) -> None:
    """Send records with numbers, round robin over the partitions, at a rate."""
    producer = await started_producer({"bootstrap_servers": bootstrap_servers})
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        for sent, number in enumerate(numbers):
            await producer.send(
                topic,
                value_of(number),
                key=key_of(number),
                headers=headers_of(number),
                partition=number % partitions,
            )
            if sent % 100 == 0:
                await asyncio.sleep(max(0.0, start + sent / per_second - loop.time()))
        await producer.flush()  # for as long as it takes: stopping gives up after some seconds
    finally:
        await stop_producer(producer)


class Sightings:
    """Reads a topic while records are forwarded to it, and notes by this machine's clock when each was visible."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.records: list[tuple[int, Record]] = []
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, bootstrap_servers: str, topic: str) -> Sightings:
        consumer = committed_reader(bootstrap_servers, topic)
        await consumer.start()
        return cls(consumer)

    async def _read(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=100)
            now = SystemClock().now()
            for batch in batches.values():
                self.records.extend((now, record) for record in batch)

    async def until(self, count: int, timeout: float) -> None:
        """Return when so many records were seen. Raises TimeoutError with how many there are."""
        try:
            await eventually(lambda: len(self.records) >= count or self._task.done(), within=timeout)
        except TimeoutError:
            raise TimeoutError(f"{len(self.records)} of {count} records after {timeout:g} s") from None

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConsumerStoppedError):
            await self._task
        await self._consumer.stop()


def number_of(record: Any) -> int:
    return int(record.headers[0][1])


def check(sightings: list[tuple[int, Record]], count: int) -> None:
    """Each number exactly once, in order within its partition, none early, key, value and headers untouched."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for seen_at, record in sightings:
        number = number_of(record)
        by_partition[record.partition].append(number)
        assert seen_at >= record.timestamp, "never early: the timestamp is that of the source and the delay"
        assert list(record.headers) == headers_of(number)
        assert (record.key, record.value) == (key_of(number), value_of(number))
    partitions = len(by_partition)
    numbers = [number for found in by_partition.values() for number in found]
    assert len(numbers) == count, f"{len(numbers)} records, {len(set(numbers))} different ones"
    for partition, found in by_partition.items():
        assert found == list(range(partition, count, partitions)), f"partition {partition} is not in order"
