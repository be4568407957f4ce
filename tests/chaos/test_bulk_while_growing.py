"""Bulk commands while a commands topic grows, on a real broker: each schedule is met once, wherever it is just then."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest
from support.application import Application
from support.reading import header, read_all, read_until

from light_scheduler.cli.growing import grow, moved
from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

GROUPS, OF_EACH, GROWN = 12, 300, 12
DAY_MS = 86_400_000
MOVED_WITHIN_S = 120.0


def waiting(application: Application) -> Iterator[ScheduleRequest]:
    for number in range(GROUPS * OF_EACH):
        group, at = number % GROUPS, SystemClock().now() + DAY_MS
        yield {"id": f"g{group:02}-{number}", "payload": b"x", "topic": application.target, "at": at}


@pytest.mark.soak
async def test_each_schedule_is_triggered_or_cancelled_once_by_bulk_commands_while_it_moves(
    application: Application,
) -> None:
    """Groups are triggered, then cancelled, one after the other, from before the topic grows until it has settled."""
    settings, topic = application.settings, application.settings.topics.commands
    workers = [application.new_worker(), application.new_worker()]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    async with application.client() as client:
        await client.schedule_many(waiting(application), wait=True, timeout=120.0)
        growing = asyncio.create_task(asyncio.to_thread(grow, settings, topic, GROWN))
        counts = []
        for group in range(GROUPS):
            if group == GROUPS - 1:
                await growing
                assert await asyncio.to_thread(moved, settings, topic, GROWN, MOVED_WITHIN_S, lambda _: None)
            act = client.trigger_many if group % 2 else client.cancel_many
            result = await act(id_prefix=f"g{group:02}-", timeout=120.0)
            counts.append(result.count)
    assert counts == GROUPS * [OF_EACH]
    triggered = {f"g{number % GROUPS:02}-{number}" for number in range(GROUPS * OF_EACH) if number % GROUPS % 2}
    await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= len(triggered)
    )
    records = await read_all(application.bootstrap_servers, application.target)
    assert Counter(header(record, "schedule-id") for record in records) == Counter(triggered)
