"""Firings that are prepared before a full second: who sees them when. Real broker, real `faust worker`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer
from support.application import Application
from support.reading import Record, header, read_until

from light_scheduler.clock import SystemClock
from light_scheduler.testing import Kafka

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


async def each_second(application: Application, id: str, topic: str) -> None:
    start = (SystemClock().now() // SECOND_MS + 2) * SECOND_MS
    async with application.client() as client:
        await client.schedule(id, b"x", topic=topic, every="1s", start=start, max_firings=FIRINGS)


class Seen(NamedTuple):
    """What a run showed: how long before they were due (ms) firings were seen, and the firings of a stamped topic."""

    too_soon: list[int]
    in_time: list[int]
    stamped: list[Record]
    stage_ahead: int


async def seen(application: Application) -> Seen:
    """Have firings each second, to a topic that has their time and to one that has that of its own clock."""
    await application.start_worker()
    stamped = f"{application.target}-stamped"
    await application.create_topic(stamped, 4, **{"message.timestamp.type": "LogAppendTime"})
    async with reading(application, "read_uncommitted") as hasty, reading(application, "read_committed") as patient:
        await each_second(application, "often", application.target)
        await each_second(application, "stamped", stamped)
        async with asyncio.timeout(60):
            too_soon, in_time = await asyncio.gather(ahead_ms(hasty), ahead_ms(patient))
    fired = await read_until(application.bootstrap_servers, [stamped], lambda records: len(records) >= FIRINGS)
    return Seen(too_soon, in_time, fired, application.settings.stage_ahead)


@pytest.fixture(scope="module")
def run(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    application = asyncio.run(Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("staging")))
    try:
        yield asyncio.run(seen(application))
    finally:
        application.close()


@pytest.mark.soak
def test_what_is_due_at_a_full_second_is_there_before_it_for_those_only_who_read_uncommitted_records(run: Seen) -> None:
    assert 0 < max(run.too_soon) <= run.stage_ahead
    assert max(run.in_time) <= 0


def test_nothing_is_prepared_for_a_topic_that_would_stamp_it_with_a_time_before_it_is_due(run: Seen) -> None:
    dues = [int(header(firing, "schedule-due") or "") for firing in run.stamped]
    assert len(set(dues)) == len(dues) == FIRINGS
    assert [firing.timestamp for firing, due in zip(run.stamped, dues, strict=True) if firing.timestamp < due] == []
