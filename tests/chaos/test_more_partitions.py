"""A commands topic that grows while workers run and are killed: nothing is lost or doubled, and every command finds
its schedule."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from support.application import Application, WorkerProcess
from support.reading import header, read_all, read_until
from support.waiting import eventually

from light_scheduler.cli.growing import grow, moved, partitioning_of
from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.model import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(1_500)]

BEFORE, AFTER = 4, 12
DAY_MS = 86_400_000
MOVED_WITHIN_S = 300.0


class Scale(NamedTuple):
    """How many schedules wait, how many fire while others move, over which time, and how many workers are killed."""

    pending: int
    firing: int
    spread_ms: int
    kills: int


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pending = metafunc.config.getoption("--pending")
    metafunc.parametrize("scale", [Scale(pending, pending // 10, 40_000, 3)], ids=[f"{pending} pending"])


def waiting(application: Application, scale: Scale, now: int) -> Iterator[ScheduleRequest]:
    """Schedules that are due tomorrow; the key of every third is neither its id nor that of its message."""
    for number in range(scale.pending):
        request: ScheduleRequest = {
            "id": f"far-{number}",
            "payload": b"x",
            "topic": application.target,
            "at": now + DAY_MS,
        }
        if number % 3 == 0:
            request |= {"key": key_of(number), "target_key": f"message-{number}"}
        yield request


def key_of(number: int) -> str:
    return f"entity-{number // 2}"


def firing(application: Application, name: str, scale: Scale, start: int) -> Iterator[ScheduleRequest]:
    for number in range(scale.firing):
        at = start + number * scale.spread_ms // scale.firing
        yield {"id": f"{name}-{number}", "payload": b"x", "topic": application.target, "at": at}


def cancels(numbers: range) -> Iterator[tuple[str, str | None]]:
    for number in numbers:
        yield f"far-{number}", key_of(number) if number % 3 == 0 else None


async def cancel(application: Application, numbers: range) -> Counter[Outcome]:
    """Cancel schedules, many at a time; return the outcomes."""
    outcomes: Counter[Outcome] = Counter()
    async with application.client() as client:
        queue = list(cancels(numbers))

        async def work() -> None:
            while queue:
                id, key = queue.pop()
                options = {} if key is None else {"key": key}
                outcomes[(await client.cancel(id, timeout=120.0, **options)).outcome] += 1  # type: ignore[call-overload]

        await asyncio.gather(*(work() for _ in range(500)))
    return outcomes


async def killed_again_and_again(application: Application, workers: list[WorkerProcess], kills: int) -> int:
    """Kill workers in turn, while schedules move; return how many were.

    The first one is killed at once. Each other one is as soon as it runs added partitions, and whether or not the one
    before is back: all schedules could have moved by then.
    """
    for number in range(kills):
        worker = workers[number % len(workers)]
        if number:
            await worker.ready()
            await worker.shows(lambda info: any(lane["partition"] >= BEFORE for lane in running(info["lanes"])))
        worker.kill()
        partitioning = await asyncio.to_thread(
            partitioning_of, application.settings, application.settings.topics.commands
        )
        if partitioning is not None and partitioning.partitions == AFTER and partitioning.is_settled:
            return number
        worker.start()
    return kills


def running(lanes: list[Any]) -> list[Any]:
    return [lane for lane in lanes if lane["state"] == "running"]


async def lanes_of(workers: list[WorkerProcess], pending: Callable[[int], bool]) -> list[Any]:
    """Return the lanes as soon as every partition runs, each worker has some, and so many schedules are pending."""

    async def shared() -> list[Any] | None:
        owned = [(await worker.get("/info"))["lanes"] for worker in workers]
        lanes = [lane for each in owned for lane in each]
        partitions = [lane["partition"] for lane in running(lanes)]
        is_so = all(owned) and len(lanes) == AFTER and sorted(partitions) == list(range(AFTER))
        return lanes if is_so and pending(sum(lane["pending"] for lane in lanes)) else None

    return await eventually(shared, within=120, every=0.05, what="all partitions with what is pending")


async def test_schedules_move_to_partitions_that_are_added_while_workers_are_killed(
    application: Application, scale: Scale
) -> None:
    assert application.settings.partitions == BEFORE
    settings, topic = application.settings, application.settings.topics.commands
    workers = [application.new_worker(), application.new_worker()]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    now = SystemClock().now()
    async with application.client() as client:
        before = await client.schedule_many(waiting(application, scale, now), wait=True, timeout=120.0)
        assert Counter(result.outcome for result in before) == {Outcome.SCHEDULED: scale.pending}
        start = SystemClock().now() + 2_000
        await client.schedule_many(firing(application, "old", scale, start))

        await asyncio.to_thread(grow, settings, topic, AFTER)
        kills = asyncio.create_task(killed_again_and_again(application, workers, scale.kills))
        # This producer goes on by the old number of partitions; the one that cancels by the new one.
        await client.schedule_many(firing(application, "new", scale, start))
        some = range(0, scale.pending, 10)
        outcomes = await cancel(application, some)
        assert outcomes == {Outcome.CANCELLED: len(some)}
        assert await kills == scale.kills
    assert await asyncio.to_thread(moved, settings, topic, AFTER, MOVED_WITHIN_S, lambda _: None)

    await asyncio.gather(*(worker.ready() for worker in workers))
    lanes = await lanes_of(workers, lambda pending: pending >= scale.pending - len(some))
    assert sum(lane["pending"] for lane in lanes if lane["partition"] >= BEFORE) > scale.pending // 3
    rest = [range(first, scale.pending, 10) for first in range(1, 10)]
    for numbers in rest:
        assert await cancel(application, numbers) == {Outcome.CANCELLED: len(numbers)}
    count = 2 * scale.firing
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= count)
    records = await read_all(application.bootstrap_servers, application.target)
    ids = {f"{name}-{number}" for name in ("old", "new") for number in range(scale.firing)}
    assert Counter(header(record, "schedule-id") for record in records) == Counter(ids)
    lanes = await lanes_of(workers, lambda pending: pending == 0)
    assert sorted(lane["partition"] for lane in lanes) == list(range(AFTER))
    assert {(lane["partitions"], lane["settled"], lane["pending"]) for lane in lanes} == {(AFTER, True, 0)}
