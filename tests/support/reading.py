"""Reading what was committed, from outside of the project's own code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer

READ_TIMEOUT_S = 60.0

Record = Any
"""An aiokafka ConsumerRecord."""


def committed_reader(bootstrap_servers: str, *topics: str) -> AIOKafkaConsumer:
    """Return a consumer of committed records without a group, from the beginning on; it is not started."""
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
    )


async def read_until(
    bootstrap_servers: str,
    topics: Sequence[str],
    enough: Callable[[list[Record]], bool],
    timeout: float = READ_TIMEOUT_S,
) -> list[Record]:
    """Read topics from their beginning, read_committed, until the records are enough. Raises TimeoutError with them."""
    consumer = committed_reader(bootstrap_servers, *topics)
    records: list[Record] = []
    await consumer.start()
    try:
        async with asyncio.timeout(timeout):
            while not enough(records):
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    records.extend(batch)
    except TimeoutError:
        raise TimeoutError(f"after {timeout} s there were {len(records)} records: {records[-5:]}") from None
    finally:
        await consumer.stop()
    return records


async def marks_passed(
    bootstrap_servers: str, topic: str, marks: Sequence[int], timeout: float = READ_TIMEOUT_S
) -> AsyncIterator[int]:
    """Read a topic from its beginning, read_committed, and yield each number of records as soon as there are so many.

    `timeout` is for each of them. Raises TimeoutError.
    """
    consumer = committed_reader(bootstrap_servers, topic)
    await consumer.start()
    found = 0
    try:
        for mark in marks:
            async with asyncio.timeout(timeout):
                while found < mark:
                    found += sum(map(len, (await consumer.getmany(timeout_ms=100)).values()))
            yield mark
    except TimeoutError:
        raise TimeoutError(f"after {timeout} s there were {found} records in {topic}, not {mark}") from None
    finally:
        await consumer.stop()


async def read_all(bootstrap_servers: str, topic: str) -> list[Record]:
    """Read everything that is committed in a topic now."""
    consumer = committed_reader(bootstrap_servers, topic)
    records: list[Record] = []
    await consumer.start()
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            while not (partitions := consumer.assignment()):  # the topic's metadata has not come yet
                await consumer.getmany(timeout_ms=50)
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(tp) < end for tp, end in ends.items()]):
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    records.extend(batch)
    finally:
        await consumer.stop()
    return records


def header(record: Record, name: str) -> str | None:
    """Return a header as text."""
    value: bytes | None = next((value for key, value in record.headers if key == name), None)
    return None if value is None else value.decode()
