"""Bulk commands while a commands topic grows: each schedule is met once, whichever partition has it just then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from msgspec import UNSET
from support.partition import ANSWER, AT, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.context.overdue_totals import LATER_MS, LOOK_MS, OVERDUE_MS, WATCHED_MS
from light_scheduler.lanes.failures.condemned_work import NOTHING_CONDEMNED
from light_scheduler.lanes.failures.failing_work_search import FailingWorkSearch, Kind, Work, WorkFailedError
from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.lanes.writes.answers import Answers
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.model import BulkTotal
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.tables.other_records import OtherRecords
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import Count, Origin, count_headers, mark_of

BEFORE, AFTER = 2, 4
ALL = frozenset(range(AFTER))
GROWING = Partitioning(AFTER, BEFORE, running=ALL, secret=SECRET, following=ALL)
SETTLED = Partitioning(AFTER, BEFORE, ALL, ALL, SECRET)
FORMER, HOME = 1, 3
MOVES = next(key for key in map(b"%d".__mod__, count()) if partition_for(key, AFTER) == HOME)
"""A key that moves from partition 1 to partition 3."""
STAYS = next(key for key in map(b"%d".__mod__, count()) if partition_for(key, AFTER) == FORMER)
"""A key that belongs to partition 1, as before."""


class Known:
    """What a lane knows of the topic."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.partitioning = partitioning

    def of(self, topic: str) -> Partitioning:
        return self.partitioning


class Topic:
    """All partitions, each with what waits in its log."""

    def __init__(self) -> None:
        self.partitions = [Partition(FakeProducer(), number=number, of=AFTER) for number in range(AFTER)]
        self.waiting: list[list[ConsumerRecord]] = [[] for _ in range(AFTER)]
        self.ends = [0] * AFTER
        self.events: Counter[tuple[str, str]] = Counter()
        self.counts: list[object] = []
        self.reasons: list[str | None] = []
        self.told: list[str | None] = []
        self.rejected: list[str | None] = []
        self.unreported: list[tuple[int, tuple[int, ...]]] = []
        self.now = AT
        self.condemned: dict[int, dict[Work, str]] = {}
        for partition in self.partitions:
            partition.partitionings = Known(Partitioning(BEFORE, secret=SECRET))

    def know(self, partitioning: Partitioning, *numbers: int) -> None:
        for number in numbers or range(AFTER):
            self.partitions[number].partitionings = Known(partitioning)

    def send(
        self, number: int, *headers: tuple[str, bytes | None], key: bytes | None, value: bytes | None = b""
    ) -> None:
        offset = self.ends[number]
        self.ends[number] += 1
        self.waiting[number].append(
            command(*headers, key=key, value=value, offset=offset, partition=number, timestamp=AT)
        )

    def rule(self, rules: TenantRules) -> None:
        for partition in self.partitions:
            partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])

    def bulk(self, number: int, verb: bytes = b"trigger") -> None:
        self.send(number, ("schedule-command", verb), ("schedule-id", b"*"), *ANSWER, key=b"bulk")

    def schedule(self, number: int, key: bytes = MOVES) -> None:
        self.send(number, due_at(AT + HOUR), *TO_REMINDERS, key=key)

    async def run(self, *numbers: int, handing_over: bool = False) -> None:
        """Run a cycle of partitions, one after the other, each with all that waits there."""
        for number in numbers:
            partition = self.partitions[number]
            partition.handover = HandoverPass() if handing_over else None
            taken, self.waiting[number] = self.waiting[number], []
            condemned = self.condemned.get(number, NOTHING_CONDEMNED)
            cycle = await partition.run(*taken, now=self.now, condemned=condemned)
            self.unreported += [(number, total.awaited) for total in cycle.transaction.unreported]
            self.events.update((event.event.value, str(event.id)) for event in partition.history)
            self.counts += [result.count for result in partition.results if result.id == "*"]
            self.reasons += [result.reason for result in partition.results if result.id == "*"]
            self.told += [event.reason for event in partition.history if event.id == "*"]
            self.rejected += [letter.field for letter in partition.dead_letters]
            for record in partition.sent(NAMES.commands):
                self.send(record.partition, *record.headers, key=record.key, value=record.value)

    async def is_settled(self, number: int) -> bool:
        return (await self.partitions[number].run(now=self.now)).moving.is_settled()

    async def watch(self, number: int, until: int) -> None:
        """Run cycles of a partition, one a minute, up to so long (ms) after the commands were recorded."""
        for self.now in range(AT + until - WATCHED_MS - LOOK_MS, AT + until + 1, LOOK_MS):
            await self.run(number)

    async def settle(self) -> None:
        for _ in range(12):
            await self.run(*range(AFTER), handing_over=True)

    def judge(self, changed: int) -> None:
        """The schedule of `MOVES` was triggered once, and the answer counts it."""
        id = MOVES.decode()
        assert self.events["updated", id] == changed
        assert (self.counts, self.rejected) == ([changed], [])


def reach_of(record: ConsumerRecord) -> str | None:
    """Return for what a copy of a bulk command is."""
    origin = mark_of(record)
    return origin.reach.kind if isinstance(origin, Origin) and origin.reach is not None else None


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.mark.parametrize("asked", range(AFTER))
async def test_a_schedule_that_moved_before_its_partition_read_the_command_is_met_where_it_is(
    topic: Topic, asked: int
) -> None:
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING)
    await topic.run(FORMER, handing_over=True)
    topic.bulk(asked)
    await topic.run(asked)
    await topic.run(HOME)
    await topic.settle()
    topic.judge(1)


@pytest.mark.parametrize("asked", range(AFTER))
async def test_a_schedule_that_moves_after_its_partition_read_the_command_is_met_there(
    topic: Topic, asked: int
) -> None:
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING)
    topic.bulk(asked)
    await topic.run(asked, FORMER, FORMER)
    await topic.run(FORMER, handing_over=True)
    await topic.settle()
    topic.judge(1)


async def test_a_command_behind_a_bulk_command_in_its_partition_comes_after_it(topic: Topic) -> None:
    topic.know(GROWING)
    await topic.settle()
    topic.know(GROWING)
    topic.bulk(HOME, b"cancel")
    topic.schedule(HOME)
    await topic.run(HOME)
    await topic.settle()
    assert topic.events == {("scheduled", MOVES.decode()): 1} | {("cancelled", "*"): 1}
    assert topic.partitions[HOME].table.pending == 1


async def test_a_command_behind_a_bulk_command_comes_after_it_though_its_former_partition_has_nothing_left(
    topic: Topic,
) -> None:
    """The partition that both are sent to is neither that of the key nor its former one, and has not settled."""
    topic.know(GROWING)
    await topic.run(FORMER, handing_over=True)
    await topic.run(0)
    topic.bulk(0, b"cancel")
    topic.schedule(0)
    await topic.run(0, HOME, FORMER)
    await topic.settle()
    assert topic.events == {("scheduled", MOVES.decode()): 1} | {("cancelled", "*"): 1}
    assert topic.partitions[HOME].table.pending == 1


@pytest.mark.parametrize("learns_first", [True, False])
async def test_a_command_behind_a_bulk_command_of_a_lane_that_knew_of_no_growth_comes_after_it(
    topic: Topic, learns_first: bool
) -> None:
    """The bulk command waits in the former partition, which has handed everything over."""
    topic.know(GROWING, FORMER, HOME)
    topic.bulk(0, b"cancel")
    await topic.run(FORMER, handing_over=True)
    await topic.run(0)
    topic.know(GROWING)
    if not learns_first:
        await topic.run(0)
    topic.schedule(0)
    await topic.run(0, HOME, FORMER)
    await topic.settle()
    assert topic.events == {("scheduled", MOVES.decode()): 1} | {("cancelled", "*"): 1}
    assert topic.partitions[HOME].table.pending == 1


async def test_no_partition_has_settled_that_waits_for_reports(topic: Topic) -> None:
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.bulk(0)
    await topic.run(0)
    topic.know(GROWING)
    copies, topic.waiting[FORMER] = topic.waiting[FORMER], []
    for _ in range(4):
        await topic.run(*range(AFTER), handing_over=True)
    assert [await topic.is_settled(number) for number in range(AFTER)] == [False, True, True, True]
    topic.waiting[FORMER] = copies
    await topic.run(FORMER)
    assert [await topic.is_settled(number) for number in range(AFTER)] == [False, False, True, True]
    await topic.settle()
    topic.judge(1)
    assert [await topic.is_settled(number) for number in range(AFTER)] == 4 * [True]


@pytest.mark.parametrize(("settles", "rejected"), [(False, ["schedule-id"]), (True, [])])
async def test_a_bulk_command_is_rejected_while_schedules_move_to_or_from_workers_that_would_miss_some(
    topic: Topic, settles: bool, rejected: list[str]
) -> None:
    older = replace(GROWING, following=frozenset({0, FORMER, HOME}))
    topic.know(older)
    if settles:
        await topic.settle()
    topic.bulk(0)
    await topic.run(0)
    assert topic.rejected == rejected
    topic.know(replace(older, following=ALL))
    topic.bulk(0)
    await topic.settle()
    assert (topic.counts, topic.rejected) == ([UNSET, 0] if rejected else [0, 0], rejected)


async def test_a_copy_that_fails_whenever_it_is_carried_out_holds_no_total_up(topic: Topic) -> None:
    topic.know(GROWING)
    topic.bulk(0)
    await topic.run(0)
    (copy,) = topic.waiting[FORMER]
    topic.condemned[FORMER] = {Work(Kind.COMMAND, copy.offset): "why"}
    await topic.settle()
    assert (topic.counts, topic.rejected) == ([0], ["record"])


async def test_a_worker_that_knows_no_reach_holds_no_total_up(topic: Topic) -> None:
    """It refuses what is not for all, and reports nothing of it, under the offset that the copy names."""
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING)
    topic.bulk(FORMER)
    await topic.run(FORMER, FORMER)
    tree, part = topic.waiting[0][0], topic.waiting[HOME][0]
    topic.waiting[0].remove(tree)
    topic.waiting[HOME].remove(part)
    for number, copy in ((0, tree), (HOME, part)):
        origin = mark_of(copy)
        assert isinstance(origin, Origin)
        topic.send(FORMER, *count_headers(Count(origin.offset, number, 0, origin.token)), key=None, value=None)
    await topic.settle()
    topic.judge(1)


async def test_only_commands_of_its_tenant_take_the_longer_way_behind_a_bulk_command(topic: Topic) -> None:
    topic.know(GROWING)
    await topic.settle()
    topic.know(GROWING)
    topic.bulk(HOME, b"cancel")
    await topic.run(HOME)
    topic.send(HOME, due_at(AT + HOUR), *TO_REMINDERS, ("schedule-tenant", b"other"), key=MOVES)
    await topic.run(HOME)
    assert topic.events["scheduled", MOVES.decode()] == 1
    topic.schedule(HOME)
    await topic.run(HOME)
    assert topic.events["scheduled", MOVES.decode()] == 1, "behind the bulk command of its tenant"
    await topic.settle()
    assert topic.events["scheduled", MOVES.decode()] == 2
    assert topic.partitions[HOME].table.pending == 2


class Looked(dict[int, BulkTotal]):
    """Totals that count how often all of them are gone through."""

    times = 0

    def values(self) -> Any:
        self.times += 1
        return super().values()

    def items(self) -> Any:
        self.times += 1
        return super().items()

    def keys(self) -> Any:
        self.times += 1
        return super().keys()

    def __iter__(self) -> Iterator[int]:  # else a copy of it would not ask for the keys
        return super().__iter__()


async def test_which_tenants_have_totals_is_looked_up_once_in_a_cycle_however_many_commands_it_takes(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.know(GROWING)
    await topic.settle()
    topic.know(GROWING)
    topic.bulk(HOME, b"cancel")
    await topic.run(HOME)
    stored, found = OtherRecords.bulk_totals, list[Looked]()

    def looked(records: OtherRecords) -> Looked:
        found.append(Looked(stored(records)))
        return found[-1]

    monkeypatch.setattr(OtherRecords, "bulk_totals", looked)
    topic.bulk(HOME, b"pause")
    for _ in range(20):
        topic.schedule(HOME)
    await topic.run(HOME)
    assert topic.events["scheduled", MOVES.decode()] == 0, "each waits behind the bulk commands of its tenant"
    assert [totals.times for totals in found] == [1]
    monkeypatch.undo()
    await topic.settle()
    assert topic.events["scheduled", MOVES.decode()] + topic.events["updated", MOVES.decode()] == 20
    assert await topic.is_settled(HOME)


@pytest.mark.parametrize("asked", [0, FORMER, HOME])
async def test_a_topic_settles_though_a_partition_never_reports_and_the_answer_has_what_was_reported(
    topic: Topic, asked: int
) -> None:
    """A worker of another version has lost the copy for a partition that was there before."""
    topic.know(GROWING)
    topic.schedule(FORMER, STAYS)
    await topic.run(FORMER)
    topic.bulk(asked)
    await topic.run(asked)
    lost = FORMER if asked == 0 else 0
    topic.waiting[lost] = []
    await topic.settle()
    await topic.watch(asked, OVERDUE_MS + LATER_MS - LOOK_MS)
    assert (topic.counts, topic.unreported, await topic.is_settled(asked)) == ([], [], False)
    await topic.watch(asked, OVERDUE_MS + LATER_MS)
    assert (topic.counts, topic.unreported) == ([int(lost != FORMER)], [(asked, (lost,))])
    assert topic.reasons == [f"partition {lost} has not confirmed the command"]
    assert await topic.is_settled(asked)


@pytest.mark.parametrize("asked", [0, FORMER, HOME])
async def test_the_answer_names_a_partition_that_the_total_below_it_has_given_up(topic: Topic, asked: int) -> None:
    """The copy for schedules that have moved is lost: their former partition waits for it, and the total for that."""
    topic.know(GROWING)
    topic.schedule(FORMER, STAYS)
    await topic.run(FORMER)
    topic.bulk(asked)
    await topic.run(asked, FORMER)
    (lost,) = [copy for copy in topic.waiting[HOME] if reach_of(copy) == "part"]
    topic.waiting[HOME].remove(lost)
    await topic.settle()
    await topic.watch(FORMER, OVERDUE_MS)
    await topic.settle()
    assert (topic.counts, topic.unreported) == ([1], [(FORMER, (HOME,))])
    assert topic.reasons == [f"partition {HOME} has not confirmed the command"]
    assert f"trigger of many; partition {HOME} has not confirmed the command" in topic.told
    assert not any(Overlay(partition.table).others.bulk_totals() for partition in topic.partitions)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_total_below_that_is_given_up_since_it_cannot_end_ends_the_one_above(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """If not even that can be reported, the one above ends by its age."""

    def fail(*_: object) -> None:
        raise ValueError("an error of the scheduler's own")

    topic.know(GROWING)
    topic.bulk(0)
    await topic.run(0, FORMER)
    topic.waiting[HOME] = [copy for copy in topic.waiting[HOME] if reach_of(copy) != "part"]
    await topic.settle()
    monkeypatch.setattr(BulkCommands, "_finish", fail)
    with pytest.raises(WorkFailedError) as caught:
        await topic.watch(FORMER, OVERDUE_MS)
    topic.condemned[FORMER] = {caught.value.work: "ValueError()"}
    if fails:
        monkeypatch.setattr(PartitionWrites, "report", fail)
    await topic.run(FORMER)
    assert topic.events["rejected", "*"] == 1
    topic.condemned.clear()
    monkeypatch.undo()
    await topic.settle()
    assert topic.counts == ([] if fails else [0])
    if fails:
        await topic.watch(0, OVERDUE_MS + LATER_MS)
    missing = FORMER if fails else HOME
    assert topic.reasons == [f"partition {missing} has not confirmed the command"]
    assert not any(Overlay(partition.table).others.bulk_totals() for partition in topic.partitions)


async def test_the_answer_names_every_partition_that_a_total_has_missed(topic: Topic) -> None:
    topic.know(GROWING)
    topic.bulk(0)
    await topic.run(0, FORMER)
    topic.waiting[2] = topic.waiting[HOME] = []
    await topic.settle()
    await topic.watch(FORMER, OVERDUE_MS)
    await topic.watch(0, OVERDUE_MS)
    await topic.settle()
    assert topic.counts == [0]
    assert topic.reasons == [f"partitions 2, {HOME} have not confirmed the command"]


async def test_a_total_waits_for_copies_that_wait_at_the_rate_though_the_rules_have_come_to_reject(
    topic: Topic,
) -> None:
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=1)
    topic.rule(rules)
    topic.bulk(0)
    await topic.run(0, 0)
    topic.waiting[FORMER] = []
    topic.rule(msgspec.structs.replace(rules, over_rate=OverRate.REJECT))
    await topic.watch(0, OVERDUE_MS + LATER_MS)
    assert topic.counts == []
    topic.rule(TenantRules())
    await topic.watch(0, OVERDUE_MS + LATER_MS + LOOK_MS)
    assert topic.counts == [0]


async def test_bulk_commands_that_fail_on_what_is_handed_over_are_given_up_one_after_the_other(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("an error of the scheduler's own")

    topic.schedule(FORMER)
    topic.bulk(FORMER)
    topic.bulk(FORMER)
    former, work_search = topic.partitions[FORMER], FailingWorkSearch()
    former.most_bulk = 0
    await topic.run(FORMER)
    former.most_bulk = 100
    topic.know(GROWING)
    monkeypatch.setattr("light_scheduler.lanes.bulk.commands.decide_bulk", fail)
    former.handover = HandoverPass()
    for _ in range(5):
        try:
            cycle = await former.run(now=topic.now, condemned=work_search.condemned)
        except WorkFailedError as failed:
            work_search.condemn(failed.work, "why")
        else:
            work_search.met(cycle.condemned_met)
    assert (work_search.condemned, work_search.silenced) == ({}, set())
    assert Overlay(former.table).others.bulk_parts() == []
    assert former.table.pending == 0, "it was handed over"


async def test_a_total_that_cannot_end_is_named_and_given_up(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("an error of the scheduler's own")

    topic.send(0, due_at(AT + HOUR), *TO_REMINDERS, key=STAYS)
    topic.bulk(0)
    await topic.run(0, 0)
    topic.waiting[FORMER] = []
    await topic.settle()
    monkeypatch.setattr(Answers, "add_bulk", fail)
    with pytest.raises(WorkFailedError) as caught:
        await topic.watch(0, OVERDUE_MS + LATER_MS)
    assert caught.value.work == Work(Kind.BULK, 1)
    topic.condemned[0] = {caught.value.work: "ValueError()"}
    await topic.run(0)
    assert topic.events["rejected", "*"] == 1
    topic.condemned.clear()
    await topic.watch(0, 2 * OVERDUE_MS)
    assert topic.counts == [0]
    assert topic.reasons == [f"partition {FORMER} has not confirmed the command"]
    assert not Overlay(topic.partitions[0].table).others.bulk_totals()


@pytest.mark.parametrize("failing", ["writes.answers.Answers.add_bulk", "writes.history.encode_history"])
async def test_a_total_is_answered_though_the_one_below_it_in_its_partition_fails_to_end_it(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The answer names what the one below has missed, even where no event of it can be recorded."""

    def fail(*_: object) -> None:
        raise ValueError("an error of the scheduler's own")

    topic.know(GROWING)
    topic.schedule(FORMER, STAYS)
    await topic.run(FORMER)
    topic.bulk(FORMER)
    await topic.run(FORMER, FORMER)
    topic.waiting[HOME] = [copy for copy in topic.waiting[HOME] if reach_of(copy) != "part"]
    await topic.settle()
    monkeypatch.setattr(f"light_scheduler.lanes.{failing}", fail)
    with pytest.raises(WorkFailedError) as caught:
        await topic.watch(FORMER, OVERDUE_MS)
    topic.condemned[FORMER] = {caught.value.work: "ValueError()"}
    await topic.run(FORMER)
    monkeypatch.undo()
    topic.condemned.clear()
    await topic.settle()
    await topic.watch(FORMER, 2 * OVERDUE_MS)
    assert topic.counts == [1]
    assert topic.reasons == [f"partition {HOME} has not confirmed the command"]
    assert topic.events["rejected", "*"] == int("answers" in failing)
    assert not any(Overlay(partition.table).others.bulk_totals() for partition in topic.partitions)


async def test_a_report_that_comes_too_late_is_rejected(topic: Topic) -> None:
    topic.bulk(0)
    await topic.run(0, 0)
    copies, topic.waiting[FORMER] = topic.waiting[FORMER], []
    await topic.watch(0, OVERDUE_MS + LATER_MS)
    assert topic.counts == [0]
    topic.waiting[FORMER] = copies
    await topic.run(FORMER, FORMER, 0)
    assert (topic.counts, topic.rejected) == ([0], ["schedule-bulk-count"])


async def test_a_partition_that_has_told_that_it_has_settled_copies_all_bulk_commands_to_all(topic: Topic) -> None:
    topic.know(GROWING)
    await topic.settle()
    assert await topic.is_settled(0)
    topic.partitions[0].queue_ends.settle(AFTER)
    for _ in range(2):
        topic.bulk(0)
        await topic.run(0)
    assert [len(waiting) for waiting in topic.waiting] == [0, 2, 2, 2]


async def test_a_partition_that_knows_more_than_the_one_that_was_asked_reaches_what_it_has_handed_over(
    topic: Topic,
) -> None:
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING, FORMER, HOME)
    await topic.run(FORMER, handing_over=True)
    topic.bulk(0)
    await topic.run(0)
    topic.know(GROWING)
    await topic.settle()
    topic.judge(1)


async def test_when_all_has_moved_each_partition_has_a_part_again(topic: Topic) -> None:
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING)
    await topic.settle()
    topic.know(SETTLED, 0, HOME)  # others have not heard of it
    topic.bulk(0)
    await topic.run(0)
    assert [len(waiting) for waiting in topic.waiting] == [0, 1, 1, 1]
    await topic.settle()
    topic.judge(1)
