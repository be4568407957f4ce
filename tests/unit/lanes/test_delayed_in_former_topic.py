"""Delayed commands that were passed on in a topic which was deleted and created again: none stops its lane."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from support.moving import AFTER, BEFORE, GROWN, MOVES, ONCE, SECRET, grown, mark, passed, record
from support.partition import ANSWER, AT, NAMES, Partition
from support.producing import FakeProducer

from light_scheduler.errors import LaneError
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.model import Outcome
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import BULK_COUNT, BULK_MISSING, FORWARDED_FROM, Grown, Origin, relayed
from light_scheduler.wire.record import Copy

OTHER, FORMER, HOME = 0, 1, 5
CANCEL = ("schedule-command", b"cancel")
FEWER = 3


def lane(number: int, partitioning: Partitioning = GROWN) -> Partition:
    lane = Partition(FakeProducer(), number=number, of=partitioning.partitions)
    grown(lane, partitioning)
    lane.read_from("first", partitioning.partitions)
    return lane


async def delaying(number: int = FORMER, partitioning: Partitioning = GROWN) -> Partition:
    """Return a lane in which each further command at this instant is delayed."""
    found = lane(number, partitioning)
    found.left_alone = frozenset(range(AFTER))  # none of them lends it tokens
    rules = TenantRules(commands_per_second=partitioning.partitions, over_rate=OverRate.DELAY)
    found.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    keys = (b"%d" % number for number in count())
    sizes = FEWER, BEFORE, partitioning.partitions
    key = next(key for key in keys if {partition_for(key, of) for of in sizes} == {number})
    await found.run(*(record(number, CANCEL, key=key, offset=offset) for offset in range(2)))
    assert delayed(found) == 1
    return found


async def created_again(lane: Partition, of: int, **options: Any) -> Cycle:
    """Have the topic created again with so many partitions, and a cycle in which no command has to wait any more."""
    grown(lane, Partitioning(of, secret=SECRET))
    lane.read_from("second", of)
    lane.tenants.book = TenantBook()
    return await lane.run(in_another_log=True, **options)


def delayed(lane: Partition) -> int:
    return sum(queue.waiting for queue in Overlay(lane.table).others.delayed().values())


def key_of(before: int, after: int) -> bytes:
    """Return a key that belongs to one partition of four, and to another one of three."""
    keys = (b"%d" % number for number in count())
    return next(key for key in keys if partition_for(key, BEFORE) == before and partition_for(key, FEWER) == after)


async def test_a_question_is_a_command_for_the_partition_that_was_asked() -> None:
    home, former = lane(HOME), await delaying()
    await home.run(record(HOME, *ONCE, *ANSWER, offset=50))
    (question,) = passed(home, FORMER)
    assert mark(question) == b"5:50:%d:?12" % AT
    await former.run(question)
    assert delayed(former) == 2
    await created_again(former, BEFORE)
    assert [(each.outcome, each.partition, each.offset) for each in former.results] == [(Outcome.SCHEDULED, HOME, 50)]
    assert (delayed(former), former.table.pending, former.dead_letters) == (0, 1, [])


async def test_a_question_is_passed_on_anew_and_who_asked_waits_for_nothing() -> None:
    home, former = lane(HOME), await delaying()
    await home.run(record(HOME, *ONCE, *ANSWER, offset=50))
    await former.run(*passed(home, FORMER))
    of = next(of for of in range(HOME + 1, AFTER) if partition_for(MOVES, of) == HOME)
    await created_again(former, of)
    assert [mark(each) for each in passed(former, HOME)] == [b"5:50:%d:.%d" % (AT, of), b"5:50:%d:=%d" % (AT, of)]
    home.read_from("second", of)
    grown(home, Partitioning(of, secret=SECRET))
    await home.run(*passed(former, HOME))
    assert [(each.outcome, each.partition, each.offset) for each in home.results] == [(Outcome.SCHEDULED, HOME, 50)]
    assert (home.table.pending, home.dead_letters, Overlay(home.table).others.any_lent) == (1, [], False)


@pytest.mark.parametrize(("after", "to"), [(OTHER, None), (FORMER, FORMER)])
async def test_a_command_that_was_sent_to_a_partition_that_is_gone_is_carried_out_or_passed_on(
    after: int, to: int | None
) -> None:
    former = await delaying(OTHER, Partitioning(BEFORE, secret=SECRET))
    key = key_of(OTHER, after)
    origin = FORWARDED_FROM, b"3:7:%d" % AT
    await former.run(record(OTHER, *ONCE, *ANSWER, origin, key=key, offset=9))
    assert delayed(former) == 2
    await created_again(former, FEWER)
    assert [(each.outcome, each.partition, each.offset) for each in former.results] == (
        [(Outcome.SCHEDULED, 3, 7)] if to is None else []
    )
    assert [(each.partition, mark(each)) for each in former.sent(NAMES.commands)] == (
        [] if to is None else [(to, b"0:9")]  # a copy that named a partition which is gone would be rejected
    )
    assert (delayed(former), former.dead_letters) == (0, [])
    if to is not None:
        home = lane(to, Partitioning(FEWER, secret=SECRET))
        await home.run(*passed(former, to))
        assert ([each.outcome for each in home.results], home.dead_letters) == ([Outcome.SCHEDULED], [])


async def test_one_that_fails_is_refused_and_its_dead_letter_names_where_it_was_sent() -> None:
    home, former = lane(HOME), await delaying()
    await home.run(record(HOME, *ONCE, *ANSWER, offset=50))
    await former.run(*passed(home, FORMER))
    cycle = await created_again(former, BEFORE, condemned={Work(Kind.COMMAND, 100): "it is not good"})
    (letter,) = former.dead_letters
    assert (letter.source_partition, letter.source_offset) == (HOME, 50)
    assert (delayed(former), len(cycle.condemned_met)) == (0, 1)


async def test_a_copy_of_a_bulk_command_counts_as_the_report_that_this_partition_is_missing() -> None:
    known = replace(GROWN, following=GROWN.running)
    sender, former = lane(OTHER, known), await delaying(FORMER, known)
    await sender.run(record(OTHER, CANCEL, ("schedule-id", b"*"), *ANSWER, offset=49))
    copies = passed(sender, FORMER)
    await former.run(*copies)
    assert (len(copies), delayed(former)) == (1, 2)
    await created_again(former, BEFORE)
    (report,) = passed(former, OTHER)
    headers = dict(report.headers)
    assert ((headers[BULK_COUNT] or b"").split(b":")[:3], headers[BULK_MISSING]) == ([b"49", b"1", b"0"], b"1")
    assert (delayed(former), former.dead_letters) == (0, [])


@pytest.mark.parametrize("way", ["?", "="])
async def test_a_lane_that_does_not_know_the_partitions_of_a_command_learns_of_them_before_it_delays_it(
    way: str,
) -> None:
    reader = await delaying(FORMER, Partitioning(BEFORE, secret=SECRET))
    command = record(FORMER, *ONCE, offset=60)
    headers = relayed(command, Origin(2, 50, AT), Grown(NAMES.commands, AFTER, SECRET), asks=way == "?")
    with pytest.raises(LaneError, match="another partition knows 12 partitions, this one 4"):
        await reader.run(record(FORMER, *headers, offset=60))
    grown(reader)
    await reader.run(record(FORMER, *headers, offset=60))
    assert delayed(reader) == 2


async def test_a_question_names_the_partition_that_asks_wherever_the_command_was_sent() -> None:
    """That is where it has to come back to."""
    home = lane(HOME)
    batches = home.context.new_batches(AT)
    cycle = Cycle(home.context, Overlay(home.table), batches, AT)
    sent_elsewhere = Copy(MOVES, b"payload", [*ONCE], HOME, 50, AT, sent=(OTHER, 9))
    cycle.moving._writes.relay(sent_elsewhere, None, FORMER, asks=True)
    await batches.send(home.producer)
    assert [mark(each) for each in passed(home, FORMER)] == [b"5:50:%d:?12" % AT]
