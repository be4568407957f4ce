"""Three workers restarted one after another while they fire, as for an upgrade: nothing lost, doubled, early or late.

These measure what a restart costs. Workers of two versions are in `test_two_versions`; what an older or newer format
does is in tests/unit/tables/test_upgrades.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from support.application import Application
from support.reading import header, read_until

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

WORKERS = 3
LEAD_MS = 6_000
SECONDS = 30
"""How long firings are due: three restarts take less."""

LATE_MS = 3_000
"""Of 99 % of all firings, on a machine that does nothing else."""


def requests(target: str, start: int, per_s: int) -> Iterator[ScheduleRequest]:
    for number in range(per_s * SECONDS):
        yield {"id": f"s-{number}", "topic": target, "at": start + number * 1_000 // per_s}


async def restart_all(application: Application, per_s: int) -> list[int]:
    """Restart each worker under load; return how late (ms) each firing was, sorted, when all have come once."""
    workers = [
        application.new_worker(instance_id=f"worker-{number}", session_timeout="20s") for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    start = SystemClock().now() + LEAD_MS + per_s * SECONDS // 10
    async with application.client() as client:
        await client.schedule_many(requests(application.target, start, per_s))
    servers, count = application.bootstrap_servers, per_s * SECONDS
    await read_until(servers, [application.target], lambda records: len(records) >= count // 20)
    for worker in workers:
        assert await worker.end() == 0
        worker.start()
        await worker.ready()
    ended_at = SystemClock().now()
    records = await read_until(servers, [application.target], lambda records: len(records) >= count)

    assert ended_at < start + SECONDS * 1_000, "the restarts were over while there was something to fire"
    times = Counter(header(record, "schedule-id") for record in records)
    assert times == {f"s-{number}": 1 for number in range(count)}
    late = [record.timestamp - int(header(record, "schedule-due") or "") for record in records]
    assert min(late) >= 0
    return sorted(late)


@pytest.mark.soak
async def test_three_workers_are_restarted_one_by_one_and_every_message_comes_once(application: Application) -> None:
    await restart_all(application, per_s=100)


@pytest.mark.soak
async def test_at_two_thousand_firings_a_second_a_rolling_restart_makes_hardly_any_late(
    application: Application, record_property: Callable[[str, object], None]
) -> None:
    late = await restart_all(application, per_s=2_000)
    p99 = late[len(late) * 99 // 100]
    record_property("lateness_p99_ms", p99)
    record_property("lateness_max_ms", late[-1])
    assert p99 < LATE_MS
