"""What cycles hold while schedules move to added partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.lane_cycles import KEYS, PAUSE, Clock, cycles_on
from support.outages import Topics
from support.partition import AT, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.bulk import commands as bulk
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.lanes.failures.failing_work_search import Kind, Work, WorkFailedError
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_REACH, FORWARDED_FROM
from light_scheduler.wire.state import decode_entry, emptied_key, encode_emptied

FORMER, PARTITIONS = 2, 4
LEAVES = next(key for key in KEYS if partition_for(key, PARTITIONS) == 2)
"""A key that moves from partition 0 to partition 2."""


@pytest.fixture
def growing() -> Partition:
    """Partition 0 of a topic that had two partitions and has four."""
    partition = Partition(FakeProducer(), of=PARTITIONS)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    all = frozenset(range(PARTITIONS))
    grow(partition, Partitioning(PARTITIONS, FORMER, running=all, secret=SECRET, following=all))
    return partition


def grow(partition: Partition, partitioning: Partitioning) -> None:
    partition.partitionings = SimpleNamespace(of=lambda topic: partitioning)


async def with_a_copy_for_many(growing: Partition) -> LaneCycles:
    """Return the cycles of a lane that has a schedule to hand over, and reads a copy of a bulk command."""
    now = growing.context.partitioning
    grow(growing, Partitioning(FORMER, secret=SECRET))
    await growing.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=LEAVES, offset=0))
    grow(growing, now)
    copy = command(*PAUSE, (FORWARDED_FROM, b"1:77:%d:%s" % (AT, b"0" * 32)), key=None, value=None, offset=9)
    return cycles_on(growing, [copy], Clock())


async def test_schedules_are_handed_over_while_a_bulk_command_is_at_work_and_as_it_leaves_them(
    growing: Partition,
) -> None:
    cycles = await with_a_copy_for_many(growing)
    made = await cycles._make(growing.table)
    await made.batches.send(growing.producer)
    copy, adoption, emptied = (each for each in growing.sent(NAMES.commands) if each.partition == 2)
    assert [each.headers[-1][0] for each in (copy, adoption, emptied)] == [BULK_REACH, ADOPTED_FROM, EMPTIED]
    assert decode_entry(adoption.value).progress.paused


async def test_a_bulk_command_is_to_blame_for_what_it_raises_on_a_schedule_that_is_handed_over(
    growing: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no good")

    cycles = await with_a_copy_for_many(growing)
    monkeypatch.setattr(bulk, "decide_bulk", fail)
    with pytest.raises(WorkFailedError) as error:
        await cycles._make(growing.table)
    assert error.value.work == Work(Kind.BULK, 9)


async def test_a_lane_that_takes_over_a_partition_that_has_settled_copies_its_first_bulk_command_to_all(
    growing: Partition,
) -> None:
    """The lane before may have reported that, and the topic can grow again as soon as the report is read."""
    overlay = Overlay(growing.table)
    for number in range(FORMER):
        overlay.others.put(emptied_key(PARTITIONS, number), encode_emptied())
    overlay.apply(changelog_offset=0, complete_at=AT)
    cycles = cycles_on(growing, [command(*PAUSE, key=None, value=None, offset=9)], Clock())
    made = await cycles._make(growing.table)
    assert {place[1] for place in made.batches.places if place[0] == NAMES.commands} == {1, 2, 3}


async def test_a_lane_remembers_that_it_has_told_that_nothing_is_left_to_be_moved(growing: Partition) -> None:
    overlay, told = Overlay(growing.table), []
    for number in range(FORMER):
        overlay.others.put(emptied_key(PARTITIONS, number), encode_emptied())
    overlay.apply(changelog_offset=0, complete_at=AT)
    growing.partitionings.report = lambda topic, _id, *report: told.append((topic, *report))
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [(NAMES.commands, 0, PARTITIONS, Stage.SETTLED)]
    assert growing.queue_ends.has_settled(PARTITIONS)


async def test_a_lane_tells_that_bulk_commands_follow_schedules_before_it_tells_that_it_runs(
    growing: Partition,
) -> None:
    told: list[Stage] = []
    grow(growing, Partitioning(PARTITIONS, FORMER, secret=SECRET))
    growing.partitionings.report = lambda *report: told.append(report[-1])
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [Stage.FOLLOWING, Stage.RUNNING]


async def test_a_lane_tells_it_too_where_an_earlier_version_has_moved_everything(
    growing: Partition,
) -> None:
    told: list[Stage] = []
    everywhere, here = frozenset(range(PARTITIONS)), frozenset({0})
    grow(growing, Partitioning(PARTITIONS, FORMER, secret=SECRET, running=everywhere, settled=here))
    growing.partitionings.report = lambda *report: told.append(report[-1])
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [Stage.FOLLOWING]
