"""Firings that are prepared before a full second: who sees them when. Real broker, real `faust worker`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer
from support.application import Application
from support.reading import header, read_until

from light_scheduler.clock import SystemClock

pytestmark = pytest.mark.integration

FIRINGS = 12
SECOND_MS = 1_000


@asynccontextmanager
async def reading(application: Application, isolation_level: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        application.target,
        bootstrap_servers=application.bootstrap_servers,
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def ahead_ms(consumer: AIOKafkaConsumer) -> list[int]:
    """Return how long before it was due each firing was seen, of the first so many; negative: after."""
    return [int(header(firing, "schedule-due") or "") - SystemClock().now() async for firing in first(consumer)]


async def first(consumer: AIOKafkaConsumer) -> AsyncIterator[object]:
    for _ in range(FIRINGS):
        yield await consumer.getone()


async def each_second(application: Application, topic: str) -> None:
    start = (SystemClock().now() // SECOND_MS + 2) * SECOND_MS
    async with application.client() as client:
        await client.schedule("often", b"x", topic=topic, every="1s", start=start, max_firings=FIRINGS)


async def test_what_is_due_at_a_full_second_is_there_before_it_for_those_only_who_read_uncommitted_records(
    served: Application,
) -> None:
    async with reading(served, "read_uncommitted") as hasty, reading(served, "read_committed") as patient:
        await each_second(served, served.target)
        async with asyncio.timeout(60):
            too_soon, in_time = await asyncio.gather(ahead_ms(hasty), ahead_ms(patient))

    assert 0 < max(too_soon) <= served.settings.stage_ahead
    assert max(in_time) <= 0


async def test_nothing_is_prepared_for_a_topic_that_would_stamp_it_with_a_time_before_it_is_due(
    served: Application,
) -> None:
    topic = f"{served.target}-stamped"
    await served.create_topic(topic, 4, **{"message.timestamp.type": "LogAppendTime"})
    await each_second(served, topic)

    fired = await read_until(served.bootstrap_servers, [topic], lambda records: len(records) >= FIRINGS)

    assert [firing.timestamp for firing in fired if firing.timestamp < int(header(firing, "schedule-due") or "")] == []
