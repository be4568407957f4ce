"""A worker's totals of a commands topic: each lane counts as it commits, and takes nothing along when it leaves."""

from __future__ import annotations

import pytest
from support.partition import AT, HOUR, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.lanes.counters import LaneCounters
from light_scheduler.model import Outcome


@pytest.fixture
async def partition() -> Partition:
    return Partition(FakeProducer())


async def test_lanes_that_come_one_after_the_other_add_to_the_same_totals(partition: Partition) -> None:
    totals = TopicTotals()
    left, new = LaneCounters(topic=totals), LaneCounters(topic=totals)
    cycle = await partition.run(
        command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a"),
        command(due_at(AT), *TO_REMINDERS, key=b"b", offset=43),
        command(due_at(AT), *TO_REMINDERS, key=b"c", offset=44),
    )
    left.committed(cycle, 0, 0, AT + 2_500)
    left.restarted()
    cycle = await partition.run(command(value=None, key=b"missing", offset=45), now=AT + HOUR)
    new.committed(cycle, 0, 0, AT + HOUR + 1)
    left.committed(await partition.run(command(value=None, key=b"missing", offset=46)), 0, 0, AT)

    assert totals.outcomes == {Outcome.SCHEDULED: 3, Outcome.NOT_FOUND: 2} == left.outcomes + new.outcomes
    assert (sum(totals.lateness.counts), totals.lateness.sum_ms, totals.lateness.max_ms) == (3, 5_001, 2_500)
    assert (sum(left.lateness.counts), sum(new.lateness.counts)) == (2, 1)
    assert (totals.restarts, left.restarts, new.restarts) == (1, 1, 0)
