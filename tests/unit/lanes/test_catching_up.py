"""Views have what was committed before they were asked for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes import assigned_lanes as module
from light_scheduler.lanes.assigned_lanes import Lanes


class Committing:
    """Takes the place of a lane whose producer waits for the answer to a commit until `answer` is set."""

    def __init__(self, partition: int) -> None:
        self.tp = TopicPartition("commands", partition)
        self.answer = asyncio.Event()
        kafka = SimpleNamespace(commit_transaction=self.answer.wait, cut_off=self.cut_off)
        self.producer = TransactionalProducer(
            SimpleNamespace(transaction_timeout_ms=10_000, producer=lambda _: kafka),
            "id",
        )
        self.applied = self.producer.rests

    @property
    def is_committing(self) -> bool:
        return self.producer.is_committing

    async def cut_off(self) -> None:
        """Nothing is under way."""

    async def commit(self) -> None:
        await self.producer._commit()


def lanes(*committing: Committing) -> Lanes:
    unused: Any = None
    found = Lanes(unused, unused, unused)
    found._lanes.update({lane.tp: lane for lane in committing})
    return found


async def test_a_view_waits_for_commits_that_are_under_way_and_for_none_that_begins_later() -> None:
    busy, idle = Committing(0), Committing(1)
    commit = asyncio.create_task(busy.commit())
    await asyncio.sleep(0)
    asked = asyncio.create_task(lanes(busy, idle).catch_up())
    await asyncio.sleep(0)
    assert not asked.done()
    later = asyncio.create_task(idle.commit())
    busy.answer.set()
    assert await asked == set()
    idle.answer.set()
    await asyncio.gather(commit, later)


async def test_a_view_that_finds_nothing_under_way_does_not_wait() -> None:
    assert await lanes(Committing(0)).catch_up() == set()


async def test_a_lane_whose_commit_is_not_answered_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CATCH_UP_S", 0.02)
    late, soon = Committing(0), Committing(1)
    commits = [asyncio.create_task(lane.commit()) for lane in (late, soon)]
    await asyncio.sleep(0)
    soon.answer.set()
    assert await lanes(late, soon).catch_up() == {("commands", 0)}
    late.answer.set()
    await asyncio.gather(*commits)


async def test_a_view_does_not_wait_for_a_commit_that_was_given_up() -> None:
    lane = Committing(0)
    commit = asyncio.create_task(lane.commit())
    await asyncio.sleep(0)
    asked = asyncio.create_task(lanes(lane).catch_up())
    await asyncio.sleep(0)
    await lane.producer.abandon()
    assert await asked == set(), "the lane starts again: it does not run"
    commit.cancel()
