"""The same calls on a real worker and on its double come to the same: results, errors, messages and history."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

import pytest
from support.application import Application
from support.clocks import HOUR, MINUTE, DrivenClock
from support.reading import READ_TIMEOUT_S, committed_reader, read_until
from support.script import Day, deliveries, events

from light_scheduler.client import SchedulerClient
from light_scheduler.testing import InMemoryScheduler
from light_scheduler.wire import decode_history

pytestmark = pytest.mark.integration

BEHIND = 6 * HOUR
OUTAGE = 35 * MINUTE
BEFORE_START = 30_000
"""How long (ms) before its start a day's first calls are made: nothing is due until they have been."""


async def test_a_worker_and_its_double_do_the_same(application: Application) -> None:
    clock = application.drive_clock(behind=BEHIND)
    start = (clock.now() // HOUR + 2) * HOUR
    double = InMemoryScheduler(now=start - BEFORE_START, topics={application.target: 4}, settings=application.settings)
    expected = Day(double, application.target, start, lambda instant: _moved(double, instant))
    simulated = await expected.run()

    await application.start_worker()
    consumer = committed_reader(application.bootstrap_servers, application.target)
    await consumer.start()
    delivered: list[Any] = []

    async def advance(instant: int) -> list[Any]:
        await _followed(clock, consumer, instant, simulated, delivered)
        return delivered

    try:
        async with application.client() as client:
            clock.advance_to(start - BEFORE_START)
            real = Day(client, application.target, start, advance)
            await real.run()
    finally:
        await consumer.stop()
    assert real.answers == expected.answers
    assert deliveries(delivered) == deliveries(simulated)
    assert events(await application.history()) == events(double.history)


async def _moved(double: InMemoryScheduler, instant: int) -> list[Any]:
    await double.advance_to(instant)
    return list(double.delivered)


async def _followed(clock: DrivenClock, consumer: Any, until: int, simulated: list[Any], delivered: list[Any]) -> None:
    """Move a worker's clock to each instant of what was simulated, and go on when as much has been delivered."""
    expected = 0
    for instant, records in groupby(simulated, lambda record: record.timestamp):
        if instant >= until:
            break
        expected += len(list(records))
        clock.advance_to(instant)
        async with asyncio.timeout(READ_TIMEOUT_S):
            while len(delivered) < expected:
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    delivered.extend(batch)
    clock.advance_to(until)


@pytest.mark.soak
async def test_an_outage_comes_to_the_same(application: Application) -> None:
    clock = application.drive_clock(behind=BEHIND)
    start = (clock.now() // HOUR + 1) * HOUR
    clock.advance_to(start - BEFORE_START)
    double = InMemoryScheduler(now=start - BEFORE_START, topics={application.target: 4}, settings=application.settings)
    await book_policies(double, application.target, start)
    await double.outage(milliseconds=OUTAGE)

    worker = await application.start_worker()
    async with application.client() as client:
        await book_policies(client, application.target, start)
    await worker.end()
    clock.advance_to(start - BEFORE_START + OUTAGE)
    worker.start()
    delivered = await read_all_of(application, application.target, len(double.delivered))
    history = await read_all_of(application, application.settings.topics.history, len(double.history))
    assert deliveries(delivered) == deliveries(double.delivered) != []
    assert events(decode_history(record.value) for record in history) == events(double.history)


async def read_all_of(application: Application, topic: str, count: int) -> list[Any]:
    """Return a topic's records, once there are so many."""
    return await read_until(application.bootstrap_servers, [topic], lambda records: len(records) >= count)


async def book_policies(client: SchedulerClient, topic: str, start: int) -> None:
    """Schedule a series for each misfire policy, one that has ended by then, and a message that has expired."""
    for policy in ("all", "skip", "coalesce"):
        series = {"start": start + 10 * MINUTE, "every": "10m", "misfire": policy, "misfire_grace": "1m"}
        await client.schedule(policy, topic=topic, **series)  # type: ignore[call-overload]
    await client.schedule("ended", topic=topic, every="10m", start=start + 10 * MINUTE, end=start + 25 * MINUTE)
    await client.schedule("expired", topic=topic, at=start + 10 * MINUTE, ttl="5m")
    await client.schedule("late", topic=topic, at=start + 10 * MINUTE)
