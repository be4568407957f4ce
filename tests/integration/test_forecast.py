"""The forecast topic: its last records are what is pending, whoever has told them. Real broker and workers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.application import Application
from support.reading import read_all
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.wire.forecast import parse_forecast

pytestmark = pytest.mark.integration

HOUR, DAY = 3_600_000, 86_400_000


async def last_told(application: Application) -> dict[tuple[str, int], int]:
    """Return how many schedules the topic says are due, by unit and by when the interval begins (UTC epoch ms)."""
    values: dict[bytes, bytes | None] = {}
    record: Any
    for record in await read_all(application.bootstrap_servers, application.settings.topics.forecast):
        values[record.key] = record.value
    told = Counter[tuple[str, int]]()
    for value in filter(None, values.values()):
        parsed = parse_forecast(value)
        assert parsed is not None
        _, interval, pending = parsed
        told[interval.unit, interval.begin * 60_000] += pending
    return dict(told)


async def tells(application: Application, wanted: dict[tuple[str, int], int]) -> None:
    async def is_told() -> bool:
        return await last_told(application) == wanted

    await eventually(is_told, within=120.0, every=0.5, what=f"the forecast {wanted}")


@pytest.mark.soak
async def test_the_forecast_follows_what_is_pending_over_a_kill_and_a_new_owner(application: Application) -> None:
    now = SystemClock().now()
    soon, far = now // HOUR * HOUR + 5 * HOUR, (now // DAY + 40) * DAY
    worker = await application.start_worker()
    async with application.client() as client:
        await client.schedule_many(
            ({"id": f"soon-{number}", "topic": application.target, "at": soon + number} for number in range(30)),
            wait=True,
        )
        await client.schedule_many(
            ({"id": f"far-{number}", "topic": application.target, "at": far + number * HOUR} for number in range(10)),
            wait=True,
        )
        await client.schedule("paused", b"x", topic=application.target, at=soon, paused=True)
        await tells(application, {("minute", soon): 30, ("day", far): 10})

        worker.kill()
        await application.start_worker()
        for number in range(5):
            await client.cancel(f"soon-{number}")
        for number in range(10):
            await client.reschedule(f"far-{number}", at=far + DAY)
        await client.resume("paused")
        await tells(application, {("minute", soon): 26, ("day", far + DAY): 10})
