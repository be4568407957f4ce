"""What a rebalance costs partitions that it does not move, a restart those of others, and growth those of the topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from support.application import Application, WorkerProcess
from support.arrivals import Asker
from support.reading import Record, header, read_until
from support.waiting import eventually

from light_scheduler.cli.growing import grow, moved
from light_scheduler.clock import SystemClock

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(300)]

COUNT = 1_200
STEP_MS = 10
LATE_MS = 1_000
"""A machine that also runs the broker, the test and the start of a worker takes longer than the rebalance itself."""

ADDED, GROWING_MS = 8, 3_000
"""How long firings and commands wait at most while the topic gets so many partitions: a second until a worker notices,
then until the new partitions run."""

MOVED_WITHIN_S, ANSWER_S = 120.0, 30.0


async def owned(workers: list[WorkerProcess]) -> dict[int, str]:
    """Return partition -> the worker that runs it."""
    owners = {}
    for worker in workers:
        for lane in (await worker.get("/info"))["lanes"]:
            if lane["state"] == "running":
                owners[int(lane["partition"])] = worker.url
    return owners


async def shared(workers: list[WorkerProcess], is_so: Callable[[dict[int, str]], bool]) -> dict[int, str]:
    async def owners() -> dict[int, str] | None:
        found = await owned(workers)
        return found if is_so(found) else None

    return await eventually(owners, every=0.05)


async def flow(application: Application) -> int:
    """Schedule a message every 10 ms, over all partitions; return when (UTC epoch ms) the first is due."""
    start = SystemClock().now() + 3_000
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"s-{number}", "topic": application.target, "at": start + number * STEP_MS}
            for number in range(COUNT)
        )
    return start


async def delivered(application: Application, count: int = COUNT) -> list[Record]:
    return await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= count)


def latest_ms(records: list[Record]) -> dict[int, int]:
    """Return partition of the commands -> the greatest lateness (ms) of its firings."""
    latest: dict[int, int] = {}
    for record in records:
        partition = int(header(record, "schedule-source-partition") or "")
        late = int(header(record, "schedule-fired-at") or "") - int(header(record, "schedule-due") or "")
        assert late >= 0
        latest[partition] = max(latest.get(partition, 0), late)
    return latest


async def test_partitions_that_stay_hardly_pause_when_a_worker_joins(
    application: Application, record_property: Callable[[str, object], None]
) -> None:
    first, second, guest = (application.new_worker() for _ in range(3))
    for worker in (first, second):
        worker.start()
    await asyncio.gather(first.ready(), second.ready())
    before = await shared([first, second], lambda owners: len(owners) == 4 and len(set(owners.values())) == 2)
    await flow(application)
    await delivered(application, COUNT // 6)

    guest.start()
    await guest.ready()
    after = await shared([first, second, guest], lambda owners: len(owners) == 4)
    records = await delivered(application)

    assert len(records) == COUNT
    latest = latest_ms(records)
    stayed = {partition: latest[partition] for partition in after if after[partition] == before[partition]}
    record_property("latest_ms_of_partitions_that_stayed", stayed)
    assert stayed
    assert max(stayed.values()) < LATE_MS


@pytest.mark.every_case
async def test_firings_and_commands_hardly_pause_while_the_topic_gets_more_partitions(
    application: Application, record_property: Callable[[str, object], None]
) -> None:
    settings, topic = application.settings, application.settings.topics.commands
    await asyncio.gather(application.start_worker(), application.start_worker())
    await application.shared()
    await flow(application)
    names = (topic, settings.topics.results, application.target)
    with Asker(application.bootstrap_servers, *names, pause_s=0.02) as asker:
        await delivered(application, COUNT // 6)
        begun_at = SystemClock().now()
        await asyncio.to_thread(grow, settings, topic, ADDED)
        assert await asyncio.to_thread(moved, settings, topic, ADDED, MOVED_WITHIN_S, lambda _: None)
        records = await delivered(application)
        await asker.await_answers(ANSWER_S)

    assert len(records) == COUNT
    latest = latest_ms([record for record in records if int(header(record, "schedule-due") or "") >= begun_at])
    took = max(asked.took or 0 for asked in asker.asked if asked.sent_at >= begun_at)
    assert len(latest) == application.settings.partitions, "every partition had something to fire meanwhile"
    assert max(asker.partitions) >= settings.partitions, "commands went to partitions that were added"
    record_property("latest_ms_by_partition", latest)
    record_property("slowest_answer_ms", took)
    assert max(latest.values()) < GROWING_MS
    assert took < GROWING_MS


@pytest.mark.every_case
async def test_a_restart_with_static_membership_is_not_noticed_by_the_others(application: Application) -> None:
    first, second = (application.new_worker(instance_id=f"node-{number}", session_timeout="20s") for number in range(2))
    for worker in (first, second):
        worker.start()
    await asyncio.gather(first.ready(), second.ready())
    before = await shared([first, second], lambda owners: len(owners) == 4 and len(set(owners.values())) == 2)
    log_size = second.log.stat().st_size
    await flow(application)
    await delivered(application, COUNT // 6)

    assert await first.end() == 0
    first.start()
    await first.ready()
    records = await delivered(application)

    assert await owned([first, second]) == before
    assert len(records) == COUNT
    latest = latest_ms(records)
    assert max(latest[partition] for partition in before if before[partition] == second.url) < LATE_MS
    assert "lanes: " not in second.log.read_text(errors="replace")[log_size:], "no assignment came"
