"""A commands topic that gets more partitions while workers of an earlier version and of this one run side by side.

`docs/operating.md` advises against it. Commands, series and schedules that move are as with one version all the same
(`Traffic` holds what came of them against what was sent); bulk commands are answered, or rejected until all have moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from support.application import Application
from support.reading import read_all
from support.traffic import traffic
from support.upgrading import (
    BULK,
    LISTED,
    PARTITIONS,
    answer,
    counts_agree,
    each_knows_all,
    killed_and_replaced,
    pairs_of,
    recorded_version,
    replaced,
    running,
    schedule_ahead,
    serve_all,
    start,
    version_before_lacking,
)
from support.versions import Version

from light_scheduler.cli.growing import grow, moved, partitioning_of
from light_scheduler.client import SchedulerClient
from light_scheduler.model import Outcome
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_dead_letter
from light_scheduler.wire.state_format import FORMAT_VERSION

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(900)]

GROWN = 12
MOVED_WITHIN_S = 180.0

REJECTED_WHILE_MOVING = (
    "selects many schedules. Some are moving to added partitions",
    "of many schedules, while some move to partitions that were added",
)
"""The reasons of this version, and of earlier ones."""


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS), session_timeout="6s"
    )
    yield application
    application.close()


async def resume_in_bulk(client: SchedulerClient, until: asyncio.Event) -> int:
    """Resume what is not paused, again and again; each time that is answered. Return how often it was rejected."""
    rejected = 0
    while not until.is_set():
        result = await client.resume_many(id_prefix="listed-", timeout=120.0, raise_on_refusal=False)
        if result.outcome is Outcome.REJECTED:
            rejected += 1
            assert str(result.reason).startswith(REJECTED_WHILE_MOVING)
        else:
            assert (result.outcome, result.count) == (Outcome.RESUMED, 0)
    return rejected


@pytest.mark.soak
@pytest.mark.parametrize(
    "earlier", [recorded_version, pytest.param(version_before_lacking, marks=pytest.mark.every_case)]
)
@pytest.mark.parametrize("current", [1, pytest.param(2, marks=pytest.mark.every_case)])
@pytest.mark.every_case
async def test_schedules_move_to_added_partitions_while_workers_of_two_versions_run(
    application: Application, tmp_path: Path, earlier: Callable[[Path], Version], current: int
) -> None:
    """So many workers run this version when the topic grows; one of the others is killed meanwhile."""
    version = await asyncio.to_thread(earlier, tmp_path / "version")
    assert version.format == FORMAT_VERSION, "both versions read what the other writes"
    settings, topic = application.settings, application.settings.topics.commands
    pairs = pairs_of(application, version)
    await asyncio.gather(*(start(pair.earlier) for pair in pairs))
    async with application.client() as client, traffic(application):
        await schedule_ahead(client, application.target)
        for pair in pairs[:current]:
            await replaced(pair)
        await each_knows_all(running(pairs))
        await asyncio.to_thread(grow, settings, topic, GROWN)
        have_moved = asyncio.Event()
        resuming = asyncio.create_task(resume_in_bulk(client, have_moved))
        await killed_and_replaced(pairs, current, GROWN)
        await serve_all(running(pairs), GROWN)
        assert await asyncio.to_thread(moved, settings, topic, GROWN, MOVED_WITHIN_S, lambda _: None)
        have_moved.set()
        rejected = await resuming
        result = await client.cancel_many(id_prefix="bulk-", timeout=120.0)
        assert (result.outcome, result.count) == (Outcome.CANCELLED, BULK)
        for pair in pairs[current + 1 :]:
            await replaced(pair)
        await each_knows_all(running(pairs))
        await counts_agree(running(pairs))
        infos = [await answer(worker, "/info") for worker in running(pairs)]
    lanes = [lane for info in infos for lane in info["lanes"]]
    assert {(lane["partitions"], lane["settled"]) for lane in lanes} == {(GROWN, True)}
    assert sum(lane["pending"] for lane in lanes if lane["partition"] >= PARTITIONS) > LISTED // 4
    letters = await read_all(application.bootstrap_servers, settings.topics.dead_letters)
    assert {decode_dead_letter(letter)[0].id for letter in letters} <= {"listed-*"}
    assert len(letters) >= rejected, "besides, an earlier version may refuse the copy of a bulk command"
    partitioning = await asyncio.to_thread(partitioning_of, settings, topic)
    assert partitioning is not None
    assert partitioning.is_settled
