"""A schedule whose key belongs to another partition since its topic has grown is found by its id and by its firings."""

from __future__ import annotations

import asyncio
from itertools import count

import aiohttp
import msgspec
import pytest
from aiokafka import AIOKafkaConsumer
from click.testing import CliRunner
from support.application import Application
from support.moving import AFTER, BEFORE, MOVES

from light_scheduler.cli import cli
from light_scheduler.cli.growing import grow, moved
from light_scheduler.client import BlockingSchedulerClient, FixedDelay, parse_firing
from light_scheduler.model import Firing, Outcome
from light_scheduler.wire import partition_for

pytestmark = pytest.mark.integration

YEAR_2100 = 4_102_444_800_000
KEY = MOVES.decode()
FORMER, HOME = partition_for(MOVES, BEFORE), partition_for(MOVES, AFTER)


def moves(key: bytes) -> bool:
    return partition_for(key, BEFORE) != partition_for(key, AFTER)


def elsewhere(name: str) -> str:
    """Return an id that, as a key, belongs to another partition than `KEY`, before and after."""
    ids = (f"{name}-{number}" for number in count())
    return next(id for id in ids if not {partition_for(id.encode(), n) for n in (BEFORE, AFTER)} & {FORMER, HOME})


FIRED, REPLACED, PAUSED, CANCELLED = map(elsewhere, ("fired", "replaced", "paused", "cancelled"))
DELAYED = next(id for id in (f"delayed-{number}" for number in count()) if moves(id.encode()))
"""This one has no key of its own, and moves too."""


async def test_a_schedule_that_has_moved_is_found_by_its_id_and_completed_by_its_firing(served: Application) -> None:
    topic, (worker,) = served.target, served.workers
    assert served.settings.partitions == BEFORE
    async with (
        served.client() as client,
        AIOKafkaConsumer(
            topic,
            bootstrap_servers=served.bootstrap_servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
    ):

        async def fired() -> Firing:
            assert (await client.trigger(FIRED, key=KEY)).outcome is Outcome.TRIGGERED
            async with asyncio.timeout(30):
                return parse_firing(await consumer.getone())

        await client.schedule(
            FIRED, topic=topic, every="1h", start=YEAR_2100, key=KEY, target_key="message", ack_timeout="1h"
        )
        for id in (REPLACED, PAUSED, CANCELLED):
            await client.schedule(id, topic=topic, at=YEAR_2100, key=KEY)
        await client.schedule(DELAYED, topic=topic, trigger=FixedDelay(3_600_000), paused=True, target_key="message")
        before = await fired()
        commands = served.settings.topics.commands
        await asyncio.to_thread(grow, served.settings, commands, AFTER)
        assert await asyncio.to_thread(moved, served.settings, commands, AFTER, 60.0, lambda _: None)

        assert (await client.complete(before)).outcome is Outcome.COMPLETED
        after = await fired()
        assert (after.key, after.schedule_key, after.source_partition) == (b"message", MOVES, FORMER)
        assert (await client.extend(after, "2h")).outcome is Outcome.UPDATED
        of_another_topic = msgspec.structs.replace(after, source_partition=AFTER)  # imported from one with more
        assert (await client.extend(of_another_topic, "3h")).outcome is Outcome.UPDATED
        with BlockingSchedulerClient(served.settings.broker, app_id=served.settings.app_id) as blocking:
            completed = await asyncio.to_thread(blocking.complete, after)
        assert completed.outcome is Outcome.COMPLETED

        assert (await client.trigger(DELAYED)).outcome is Outcome.TRIGGERED
        async with asyncio.timeout(30):
            delayed = parse_firing(await consumer.getone())
        assert (delayed.key, delayed.schedule_key) == (b"message", None)
        assert (await client.complete(delayed)).outcome is Outcome.COMPLETED

    place = f"{worker.url}/api/v1/tenants/default/schedules"
    body = {"trigger": {"at": YEAR_2100 + 1}, "target": {"topic": topic}}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{place}/{REPLACED}") as response:
            found = await response.json()
        assert (found["source"]["partition"], found["partition"]) == (FORMER, HOME)
        async with session.put(f"{place}/{REPLACED}", json=body) as response:
            answer = await response.json()
        assert (answer["outcome"], answer["partition"], answer["version"]) == ("updated", HOME, 2)
        async with session.delete(f"{place}/{CANCELLED}") as response:
            assert (await response.json())["outcome"] == "cancelled"
    arguments = ("pause", PAUSED, "--app-id", served.settings.app_id, "--broker", served.settings.broker)
    paused = await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, "--url", worker.url])
    assert "paused" in paused.output
    assert {each["id"]: each["state"] for each in await worker.listed()} == {
        FIRED: "pending",
        DELAYED: "paused",
        REPLACED: "pending",
        PAUSED: "paused",
    }
