"""Periodic jobs that are declared in code, with the real engine in memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from light_scheduler.client import Firing
from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.testing import InMemoryScheduler


@pytest.fixture
def scheduler() -> InMemoryScheduler:
    return InMemoryScheduler(now=datetime(2030, 1, 1, tzinfo=UTC))


async def nothing(_: Firing) -> None:
    return


def declare(scheduler: InMemoryScheduler, *, payload: bytes = b"") -> None:
    scheduler.cron("0 9 * * 1-5", name="report", topic="jobs", timezone="Europe/Prague", payload=payload)(nothing)
    scheduler.every("15m", name="clean", topic="jobs", labels="team=billing")(nothing)


def replica(scheduler: InMemoryScheduler) -> InMemoryScheduler:
    """Another client of the same scheduler, with nothing declared."""
    other = InMemoryScheduler()
    other._channel = scheduler._channel
    return other


async def versions(scheduler: InMemoryScheduler) -> dict[str, int]:
    return {schedule.id: schedule.version async for schedule in scheduler.list()}


async def test_a_job_is_scheduled_once_however_often_it_is_synchronised(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    others = [replica(scheduler) for _ in range(5)]
    for other in others:
        declare(other)
    plans = await asyncio.gather(*(each.sync("billing") for each in (scheduler, *others)))
    assert str(plans[0]) == (
        "+ report cron=0 9 * * 1-5 timezone=Europe/Prague topic=jobs\n+ clean every=15m topic=jobs\n= 0 unchanged"
    )
    assert (await scheduler.sync("billing")).changes == ()
    assert await versions(scheduler) == {"clean": 1, "report": 1}
    await scheduler.advance(minutes=30)
    assert [firing.id for firing in scheduler.firings] == ["clean", "clean"]


async def test_a_job_that_has_changed_is_replaced_by_one_replica(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    await scheduler.sync("billing")
    others = [replica(scheduler) for _ in range(3)]
    for other in others:
        declare(other, payload=b"new")
    plans = await asyncio.gather(*(other.sync("billing") for other in others))
    assert [change.sign + change.name for change in plans[0].changes] == ["~report"]
    assert await versions(scheduler) == {"clean": 1, "report": 2}


@pytest.mark.parametrize("given", [iter, dict, list])
async def test_a_job_keeps_its_headers_however_they_are_given(scheduler: InMemoryScheduler, given: Any) -> None:
    headers = [("kind", "a"), ("source", "billing")]
    scheduler.every("1m", name="tick", topic="jobs", headers=given(headers))(nothing)
    await scheduler.sync("billing", dry_run=True)
    await scheduler.sync("billing")
    assert (await scheduler.sync("billing")).unchanged == ("tick",)
    await scheduler.advance(minutes=1)
    assert scheduler.firings[0].headers == [("kind", b"a"), ("source", b"billing")]


async def test_a_paused_job_stays_paused_when_its_definition_changes(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    await scheduler.sync("billing")
    await scheduler.pause("report")
    other = replica(scheduler)
    declare(other, payload=b"new")
    await other.sync("billing")
    await scheduler.advance(days=3)
    assert {firing.id for firing in scheduler.firings} == {"clean"}
    assert (await other.sync("billing")).changes == ()
    assert (await scheduler.resume("report")).version == 2
    await scheduler.advance(days=3)
    assert [firing.payload for firing in scheduler.firings if firing.id == "report"][-1] == b"new"


async def test_a_dry_run_changes_nothing(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    assert len((await scheduler.sync("billing", dry_run=True)).changes) == 2
    assert await versions(scheduler) == {}


async def test_what_is_gone_from_the_code_is_removed_on_request_only(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    await scheduler.schedule("not-a-job", topic="jobs", after="1h")
    await scheduler.sync("billing")
    other = replica(scheduler)
    other.every("15m", name="clean", topic="jobs", labels="team=billing")(nothing)
    plan = await other.sync("billing")
    assert (plan.unchanged, plan.left) == (("clean",), ("report",))
    assert "? report: not declared; remove=True cancels them" in str(plan)
    assert str(await other.sync("billing", remove=True)) == "- report (version 1)\n= 1 unchanged"
    assert (await other.sync("another group", dry_run=True, remove=True)).left == ()
    assert (await versions(scheduler)).keys() == {"clean", "not-a-job"}


async def test_a_schedule_of_somebody_else_is_not_replaced(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("report", b"mine", topic="jobs", after="1h")
    declare(scheduler)
    with pytest.raises(ClientError, match="another group has one of these names: report"):
        await scheduler.sync("billing")
    assert await versions(scheduler) == {"clean": 1, "report": 1}


async def test_a_firing_leads_to_its_function(scheduler: InMemoryScheduler) -> None:
    @scheduler.every("1m", topic="jobs")
    async def tick(_: Firing) -> None:
        return

    await scheduler.sync("billing")
    await scheduler.advance(minutes=1)
    assert scheduler.job_of(scheduler.firings[0]) is tick
    with pytest.raises(ClientError, match="no job 'tick' is declared"):
        InMemoryScheduler().job_of(scheduler.firings[0])


@pytest.mark.parametrize("name", ["tick", "tick@home", "tick" * 60], ids=["plain", "with @", "long"])
async def test_a_retry_of_a_job_leads_to_the_same_function(scheduler: InMemoryScheduler, name: str) -> None:
    @scheduler.every("1h", name=name, topic="jobs")
    async def tick(_: Firing) -> None:
        return

    await scheduler.sync("billing")
    await scheduler.advance(hours=1)
    for _ in range(2):
        await scheduler.retry(scheduler.firings[-1], "jobs")
        await scheduler.advance(minutes=1)
    assert [scheduler.job_of(firing) for firing in scheduler.firings] == [tick] * 3
    assert scheduler.firings[-1].id.endswith("/retry/3")


def test_a_name_is_declared_once_and_a_job_has_no_end(scheduler: InMemoryScheduler) -> None:
    declare(scheduler)
    with pytest.raises(InvalidCommand, match="declared twice"):
        declare(scheduler)
    with pytest.raises(InvalidCommand, match="max_firings"):
        scheduler.every("1m", topic="jobs", max_firings=3)(nothing)


def test_a_job_has_no_entity_key_and_its_messages_may_have_one(scheduler: InMemoryScheduler) -> None:
    with pytest.raises(InvalidCommand, match="`target_key` is the key of their messages"):
        scheduler.every("1m", topic="jobs", key="shop")(nothing)
    scheduler.every("1m", topic="jobs", target_key="shop")(nothing)


@pytest.mark.parametrize("option", ["id", "topci"])
def test_an_argument_that_no_job_has_is_refused_where_it_is_declared(scheduler: InMemoryScheduler, option: str) -> None:
    options: Any = {option: "daily"}
    with pytest.raises(InvalidCommand, match=f"{option}: is not an argument"):
        scheduler.cron("0 9 * * *", topic="jobs", **options)(nothing)
