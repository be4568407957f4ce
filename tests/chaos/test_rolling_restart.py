"""Three workers restarted one after another while they fire, as for an upgrade: nothing lost, doubled, early or late.

These measure what a restart costs, as a read_committed consumer sees it. Workers of two versions are in
`test_two_versions`; what an older or newer format does is in tests/unit/tables/test_upgrades.py.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from support.application import Application, WorkerProcess
from support.arrivals import Arrival, Arrivals
from support.waiting import eventually

from light_scheduler.bench.figures import p99_by_second
from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

WORKERS = 3
LEAD_MS = 6_000
SECONDS = 30
"""How long firings are due: three restarts take less."""

ARRIVE_S = 60.0
CATCH_UP_MS = 1_000
"""A worker's partitions have nobody while it restarts, and are up to date so long afterwards. How long a restart takes
depends on the machine: benchmarks/outages.py measures it."""


def requests(target: str, start: int, per_s: int) -> Iterator[ScheduleRequest]:
    for number in range(per_s * SECONDS):
        yield {"id": f"s-{number}", "topic": target, "at": start + number * 1_000 // per_s}


async def restart(worker: WorkerProcess) -> int:
    """Restart a worker in order; return how long that took, in ms."""
    started_at = time.monotonic()
    assert await worker.end() == 0
    worker.start()
    await worker.ready()
    return round((time.monotonic() - started_at) * 1_000)


async def restart_all(application: Application, per_s: int) -> tuple[list[Arrival], int]:
    """Restart each worker under load; return the arrivals, when all have come once, and the longest restart in ms."""
    workers = [
        application.new_worker(instance_id=f"worker-{number}", session_timeout="20s") for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    await application.shared()
    start = SystemClock().now() + LEAD_MS + per_s * SECONDS // 10
    async with application.client() as client:
        await client.schedule_many(requests(application.target, start, per_s))
    count = per_s * SECONDS
    with Arrivals(application.bootstrap_servers, [application.target]) as arrivals:
        seen = arrivals.seen[application.target]
        await eventually(lambda: len(seen) >= count // 20, within=ARRIVE_S)
        restarts = [await restart(worker) for worker in workers]
        ended_at = SystemClock().now()
        await arrivals.await_count(application.target, count, ARRIVE_S)

    assert ended_at < start + SECONDS * 1_000, "the restarts were over while there was something to fire"
    assert Counter(arrival.id for arrival in seen) == {f"s-{number}": 1 for number in range(count)}
    assert min(arrival.fired_at - arrival.due for arrival in seen) >= 0
    assert min(arrival.lateness for arrival in seen) >= 0
    return seen, max(restarts)


@pytest.mark.soak
@pytest.mark.every_case
async def test_three_workers_are_restarted_one_by_one_and_every_message_comes_once(application: Application) -> None:
    await restart_all(application, per_s=100)


@pytest.mark.soak
@pytest.mark.every_case
async def test_at_two_thousand_firings_a_second_hardly_any_is_later_than_a_restart_takes(
    application: Application, record_property: Callable[[str, object], None]
) -> None:
    arrivals, longest = await restart_all(application, per_s=2_000)
    seconds = p99_by_second((arrival.due, arrival.lateness) for arrival in arrivals)
    record_property("longest_restart_ms", longest)
    record_property("lateness_p99_ms_by_second", list(seconds.values()))
    assert len(seconds) >= SECONDS
    assert {second: p99 for second, p99 in seconds.items() if p99 >= longest + CATCH_UP_MS} == {}
