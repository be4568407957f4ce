"""What a lane has for a partition that takes nothing: it waits in order, and arrives once when that is back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from support import bulk
from support import partition as supported
from support.moving import AFTER, BEFORE, ONCE, SECRET, STAYS, Known, grown, mark, passed, record
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, TO_REMINDERS, Partition, due_at, topic
from support.producing import FakeProducer, Sent

from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.failures.failing_work_search import EVERYTHING, Kind
from light_scheduler.lanes.growing import handover
from light_scheduler.lanes.growing.handover import AGAIN_MS, HandoverPass
from light_scheduler.lanes.growth_progress import GrowthProgress
from light_scheduler.lanes.writes import waiting as waiting_writes
from light_scheduler.model import EventType, Outcome
from light_scheduler.model.adoption import Emptied
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.tables import MemoryStore, Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED, emptied_headers
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM
from light_scheduler.wire.waiting_state import is_tenant_part

COUNT, HERE, AWAY, THERE = 4, 0, 2, 3
command = partial(supported.command, partition=HERE)


def keys_of(partition: int, n: int = 1) -> list[bytes]:
    keys = (b"%d" % number for number in count())
    return [next(key for key in keys if partition_for(key, COUNT) == partition) for _ in range(n)]


(MINE,), (STRAY, ANOTHER), (OTHER,) = keys_of(HERE), keys_of(AWAY, 2), keys_of(THERE)


@pytest.fixture
async def partition(producer: Any) -> Partition:
    """Partition 0 of four; partition 2 takes nothing."""
    partition = Partition(producer, number=HERE, of=COUNT)
    partition.away = frozenset({AWAY})
    return partition


def schedule(key: bytes, *headers: tuple[str, bytes | None], **fields: Any) -> ConsumerRecord:
    return command(due_at(AT + HOUR), *TO_REMINDERS, *headers, key=key, **fields)


def waiting(partition: Partition) -> int:
    return sum(queue.waiting for queue in Overlay(partition.table).others.waiting().values())


def written(partition: Partition) -> list[tuple[int, bytes | None]]:
    return [(each.partition, each.key) for each in partition.sent(NAMES.commands)]


STRAYS = {
    "schedule": lambda **fields: schedule(STRAY, **fields),
    "schedule with an answer": lambda **fields: schedule(STRAY, *ANSWER, **fields),
    "cancel by null": lambda **fields: command(key=STRAY, value=None, **fields),
    "no key": lambda **fields: command(("schedule-id", STRAY), key=None, value=None, **fields),
}


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
async def test_a_command_for_a_partition_that_takes_nothing_arrives_as_it_would_have_and_once(
    partition: Partition, stray: Callable[..., ConsumerRecord]
) -> None:
    cycle = await partition.run(stray(offset=7))
    assert (written(partition), cycle.forwarded, partition.dead_letters, partition.results) == ([], 1, [], [])
    (event,) = partition.history
    assert event.event is EventType.MOVED
    assert str(event.reason).endswith("waits for partition 2, that of its key, which cannot be written to just now")
    await partition.run(now=AT + HOUR)
    assert (written(partition), waiting(partition)) == ([], 1)

    partition.away = frozenset()
    await partition.run(now=AT + HOUR)
    late = partition.sent(NAMES.commands)
    assert (partition.history, waiting(partition)) == ([], 0)
    await partition.run(now=AT + HOUR)
    assert written(partition) == []
    assert await as_sent_at_once(stray(offset=7)) == [each._replace(timestamp=AT) for each in late]


async def as_sent_at_once(record: ConsumerRecord) -> list[Sent]:
    healthy = Partition(FakeProducer(), number=HERE, of=COUNT)
    await healthy.run(record)
    return healthy.sent(NAMES.commands)


@pytest.mark.parametrize("plain_paths", [True, False])
async def test_nothing_else_waits_neither_commands_nor_firings(partition: Partition, plain_paths: bool) -> None:
    partition.plain_paths = plain_paths
    await partition.run(schedule(MINE, offset=1), now=AT)
    await partition.run(
        schedule(STRAY, offset=2),
        schedule(OTHER, offset=3),
        command(*ANSWER, key=MINE, value=None, offset=4),
        command(due_at(AT + 5), *TO_REMINDERS, key=MINE, offset=5),
        now=AT + 10,
    )
    assert written(partition) == [(THERE, OTHER)]
    assert [result.outcome for result in partition.results] == [Outcome.CANCELLED]
    assert len(partition.sent("reminders")) == 1


async def test_what_comes_later_for_the_partition_is_sent_behind_what_waits(partition: Partition) -> None:
    strays = [schedule(STRAY, offset=1), schedule(ANOTHER, offset=2), command(key=STRAY, value=None, offset=3)]
    await partition.run(*strays)
    partition.away = frozenset()
    await partition.run(schedule(ANOTHER, offset=4), limit=2)
    assert [offset_of(each) for each in partition.sent(NAMES.commands)] == [1, 2]
    await partition.run(schedule(STRAY, offset=5))
    assert [offset_of(each) for each in partition.sent(NAMES.commands)] == [3, 4, 5]
    await partition.run(schedule(STRAY, offset=6))
    assert [offset_of(each) for each in partition.sent(NAMES.commands)] == [6]


def offset_of(record: Any) -> int:
    return int(dict(record.headers)[FORWARDED_FROM].split(b":")[1])


@pytest.mark.parametrize("compacts", [False, True])
async def test_it_waits_and_is_sent_once_whatever_becomes_of_the_worker(partition: Partition, compacts: bool) -> None:
    await partition.run(schedule(STRAY, offset=1), schedule(ANOTHER, offset=2), applies=False)
    partition.restart(MemoryStore(), now=AT)
    assert waiting(partition) == 2
    partition.away = frozenset()
    await partition.run(applies=False, limit=1)
    assert written(partition) == [(AWAY, STRAY)]
    if compacts:
        partition.compact()
    partition.restart(MemoryStore(), now=AT)
    await partition.run()
    assert written(partition) == [(AWAY, ANOTHER)]
    partition.restart(MemoryStore(), now=AT)
    await partition.run()
    assert (written(partition), waiting(partition)) == ([], 0)


async def test_a_cycle_that_is_dropped_has_neither_kept_nor_sent_anything(partition: Partition) -> None:
    await partition.run(schedule(STRAY, offset=1), commits=False)
    assert waiting(partition) == 0
    await partition.run(schedule(STRAY, offset=1))
    partition.away = frozenset()
    await partition.run(commits=False)
    assert waiting(partition) == 1
    await partition.run()
    assert written(partition) == [(AWAY, STRAY)]


async def test_schedules_that_wait_count_as_pending_ones_where_these_are_limited(partition: Partition) -> None:
    partition.limits = replace(partition.limits, max_pending_per_partition=2)
    await partition.run(
        schedule(MINE, offset=1),
        schedule(STRAY, offset=2),
        schedule(ANOTHER, *ANSWER, offset=3),
        command(key=ANOTHER, value=None, offset=4),
    )
    assert [(each.field, each.source_offset) for each in partition.dead_letters] == [
        ("quota.max_pending_per_partition", 3)
    ]
    assert [result.outcome for result in partition.results] == [Outcome.REJECTED]
    assert waiting(partition) == 2, "a cancel makes no schedule"


@pytest.mark.parametrize(("most", "limit"), [("MOST_WAITING", 2), ("MOST_WAITING_BYTES", 200)])
async def test_of_a_tenant_so_much_may_wait_for_a_partition_and_more_is_rejected(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, most: str, limit: int
) -> None:
    monkeypatch.setattr(waiting_writes, most, limit)
    acme = ("schedule-tenant", b"acme")
    partition.away = frozenset({AWAY, THERE})
    cycle = await partition.run(
        schedule(STRAY, acme, offset=1),
        command(acme, key=STRAY, value=None, offset=2),
        schedule(STRAY, acme, *ANSWER, offset=3),
        command(acme, *ANSWER, key=STRAY, value=None, offset=4),
        schedule(ANOTHER, offset=5),
        schedule(OTHER, acme, offset=6),
    )
    assert [(each.outcome, each.field, each.offset) for each in partition.results] == [
        (Outcome.REJECTED, "quota.unsent_commands", offset) for offset in (3, 4)
    ]
    assert (waiting(partition), len(partition.dead_letters), cycle.transaction.over_quota) == (4, 2, 2)
    partition.restart(MemoryStore(), now=AT)
    await partition.run(command(acme, *ANSWER, key=STRAY, value=None, offset=7))
    assert [each.field for each in partition.results] == ["quota.unsent_commands"]

    partition.away = frozenset({THERE})
    await partition.run(limit=2)
    partition.away = frozenset({AWAY, THERE})
    await partition.run(schedule(STRAY, acme, *ANSWER, offset=8))
    assert (partition.results, waiting(partition)) == ([], 3)


async def test_a_tenant_with_room_for_a_partition_that_is_there_is_not_asked_what_waits_for_another(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_writes, "MOST_WAITING", 0)
    await partition.run(schedule(OTHER, offset=1), schedule(STRAY, offset=2))
    assert written(partition) == [(THERE, OTHER)]
    assert [each.source_offset for each in partition.dead_letters] == [2]


async def test_nothing_is_left_of_a_tenant_for_which_nothing_waits(partition: Partition) -> None:
    await partition.run(schedule(STRAY, offset=1), schedule(ANOTHER, offset=2))
    partition.away = frozenset()
    await partition.run()
    partition.compact()
    assert [each.key for each in partition.changelog if is_tenant_part(each.key) and each.value is not None] == []


async def test_a_command_that_is_too_large_to_wait_is_carried_out_where_it_is(partition: Partition) -> None:
    partition.topics[CHANGELOG] = topic(COUNT, 2_000)
    await partition.run(schedule(STRAY, ("note", b"n" * 1_900), value=b"", offset=1))
    assert (waiting(partition), written(partition)) == (0, [])
    assert [each.field for each in partition.dead_letters] == ["payload"], "it is too large to be stored as well"
    partition.topics[CHANGELOG], partition.topics[NAMES.commands] = topic(COUNT), topic(COUNT, 2_000)
    await partition.run(schedule(STRAY, ("note", b"n" * 1_900), value=b"", offset=2))
    assert (waiting(partition), partition.table.pending) == (0, 1)


async def test_a_bulk_command_that_is_too_large_to_wait_is_rejected_and_copied_nowhere(partition: Partition) -> None:
    partition.topics[CHANGELOG] = topic(COUNT, 3_000)
    cancel = command(("schedule-command", b"cancel"), ("schedule-id", b"*"), *ANSWER, value=b"n" * 2_900, offset=1)
    await partition.run(cancel)
    assert (waiting(partition), written(partition)) == (0, [])
    assert [each.field for each in partition.dead_letters] == ["payload"]


# -- bulk commands ----------------------------------------------------------------------------------------------------


async def test_a_bulk_command_is_carried_out_where_it_can_be_and_answered_with_the_whole_count(producer: Any) -> None:
    lanes = bulk.Topic(producer)
    for number in range(bulk.COUNT):
        lanes.put(number, f"{number}/a", f"{number}/b")
    await lanes.settle()
    lanes.partitions[0].away = frozenset({2})
    lanes.control(0, "cancel", "*")
    await lanes.settle()
    assert sorted(lanes.pending) == ["2/a", "2/b"]
    assert (lanes.totals, lanes.rejected) == ([], [])
    lanes.put(0, "0/later")
    await lanes.settle()
    assert "0/later" in lanes.pending, "it was sent after the bulk command"

    lanes.partitions[0].away = frozenset()
    await lanes.cycle(0)
    await lanes.settle()
    assert lanes.totals == [("cancel", "*", Outcome.CANCELLED, 6)]
    assert sorted(lanes.pending) == ["0/later"]
    assert lanes.rejected == []


async def test_a_bulk_command_is_rejected_and_copied_nowhere_if_no_more_of_its_tenant_may_wait(
    producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_writes, "MOST_WAITING", 1)
    lanes = bulk.Topic(producer)
    lanes.put(1, "1/a")
    await lanes.settle()
    lanes.partitions[0].away = frozenset({2})
    lanes.control(0, "pause", "*")
    await lanes.settle()
    lanes.control(0, "cancel", "*")
    await lanes.settle()
    assert [(each.outcome, each.field) for each in lanes.results] == [(Outcome.REJECTED, "quota.unsent_commands")]
    assert sorted(lanes.pending) == ["1/a"]
    lanes.partitions[0].away = frozenset()
    await lanes.cycle(0)
    await lanes.settle()
    assert lanes.totals[1:] == [("pause", "*", Outcome.PAUSED, 1)]


async def test_the_report_of_a_bulk_command_waits_for_the_partition_that_the_command_was_sent_to(producer: Any) -> None:
    lanes = bulk.Topic(producer)
    for number in range(bulk.COUNT):
        lanes.put(number, f"{number}/a")
    await lanes.settle()
    for number in (1, 2):
        lanes.partitions[number].away = frozenset({0})
    lanes.control(0, "cancel", "*")
    await lanes.settle()
    assert (lanes.pending, lanes.totals) == ({}, [])
    for number in (1, 2):
        lanes.partitions[number].away = frozenset()
        await lanes.cycle(number)
        sent = lanes.partitions[number].sent(NAMES.commands)
        assert [BULK_COUNT in dict(each.headers) for each in sent] == [True]
    await lanes.settle()
    assert lanes.totals == [("cancel", "*", Outcome.CANCELLED, 3)]


# -- a topic that has grown -------------------------------------------------------------------------------------------

FORMER, HOME = 1, 5
"""Where `MOVES` belonged, and where it belongs."""


@pytest.fixture
async def former(producer: Any) -> Partition:
    """A partition that had a schedule when its topic grew; the partition that it belongs to takes nothing."""
    former = Partition(producer, number=FORMER, of=AFTER)
    grown(former, Partitioning(BEFORE, secret=SECRET))
    await former.run(record(FORMER, *ONCE, offset=1))
    grown(former)
    former.away = frozenset({HOME})
    return former


async def test_a_schedule_stays_and_fires_while_the_partition_that_it_belongs_to_takes_nothing(
    former: Partition,
) -> None:
    former.handover = HandoverPass()
    await former.run()
    assert (former.table.pending, passed(former, HOME), waiting(former)) == (1, [], 0)
    await former.run(now=AT + HOUR)
    assert len(former.sent("reminders")) == 1


async def test_it_is_handed_over_as_soon_as_the_partition_is_back_and_only_then_nothing_is_left(
    former: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await former.run(record(FORMER, *ONCE, key=STAYS, offset=2))
    monkeypatch.setattr(handover, "MOST_SEEN", 1)
    former.handover = HandoverPass()
    for _ in range(5):
        await former.run(now=AT + 1)
    former.away = frozenset()
    sent = []
    for _ in range(3):
        await former.run(now=AT + 2)
        sent += passed(former, HOME)
    adoption, emptied = sent
    assert (mark(adoption, ADOPTED_FROM), mark(emptied, EMPTIED)) == (b"1", b"1:12")
    assert former.table.pending == 1


async def test_a_schedule_never_waits_behind_other_records_but_stays_and_fires_until_they_are_sent(
    former: Partition,
) -> None:
    await former.run(record(FORMER, ("schedule-id", b"other"), *ONCE, value=b"n" * 2_000, offset=2))
    former.away, former.kinds = frozenset(), EVERYTHING - {Kind.DELAYED}
    former.handover = HandoverPass()
    await former.run()
    await former.run(now=AT + AGAIN_MS)
    assert (former.table.pending, passed(former, HOME), waiting(former)) == (1, [], 1)
    assert not any(mark(each, EMPTIED) for each in former.sent(NAMES.commands))
    former.kinds = EVERYTHING
    await former.run(now=AT + AGAIN_MS + 1)
    command, adoption, emptied = passed(former, HOME)
    assert (command.value, mark(adoption, ADOPTED_FROM), mark(emptied, EMPTIED)) == (b"n" * 2_000, b"1", b"1:12")
    assert (former.table.pending, waiting(former)) == (0, 0)


async def test_commands_for_a_former_partition_or_for_that_of_the_key_count_for_their_tenant_as_well(
    former: Partition, producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_writes, "MOST_WAITING", 1)
    home = Partition(producer, number=HOME, of=AFTER)
    grown(home)
    home.away = frozenset({FORMER})
    for lane, number in ((home, HOME), (former, FORMER)):
        await lane.run(
            *(record(number, ("schedule-id", b"new"), *ONCE, *ANSWER, offset=offset) for offset in range(50, 52))
        )
        assert [(each.offset, each.field) for each in lane.results] == [(51, "quota.unsent_commands")]
        assert waiting(lane) == 1


async def test_a_command_for_it_is_carried_out_where_it_is_and_who_asked_is_told_so_later(
    former: Partition, producer: Any
) -> None:
    home = Partition(producer, number=HOME, of=AFTER)
    grown(home)
    await home.run(record(HOME, ("schedule-command", b"pause"), *ANSWER, offset=50))
    await former.run(*passed(home, FORMER))
    assert [(each.outcome, each.offset) for each in former.results] == [(Outcome.PAUSED, 50)]
    assert (passed(former, HOME), former.table.pending, waiting(former)) == ([], 1, 1)
    former.away = frozenset()
    await former.run()
    (told,) = passed(former, HOME)
    assert mark(told) == b"5:50:%d:.12" % AT
    await home.run(told)
    assert not Overlay(home.table).others.any_lent


async def test_a_command_for_an_unknown_id_waits_and_so_do_those_behind_it_and_the_word_that_nothing_is_left(
    former: Partition,
) -> None:
    await former.run(record(FORMER, ("schedule-command", b"cancel"), offset=2))
    former.handover = HandoverPass()
    await former.run(record(FORMER, *ONCE, offset=3), record(FORMER, ("schedule-command", b"cancel"), offset=4))
    assert (passed(former, HOME), waiting(former)) == ([], 3)
    assert {each.partition for each in former.sent(NAMES.commands)} == set(range(AFTER)) - {FORMER, HOME}
    former.away = frozenset()
    await former.run(record(FORMER, *ONCE, offset=5))
    assert [mark(each) or mark(each, EMPTIED) for each in passed(former, HOME)] == [
        b"1:3:%d:=12" % AT,
        b"1:4:%d:=12" % AT,
        b"1:12",
        b"1:5:%d:=12" % AT,
    ]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_partition_with_something_that_waits_does_not_count_as_settled(former: Partition, waits: bool) -> None:
    former.away = former.away if waits else frozenset()
    former.handover = HandoverPass()
    await former.run(record(FORMER, ("schedule-command", b"cancel"), offset=2))
    emptied = [supported.command(*emptied_headers(Emptied(n, AFTER), SECRET), key=None, value=None) for n in range(4)]
    await former.run(*(each for n, each in enumerate(emptied) if n != FORMER))
    cycle = await former.run(now=AT + AGAIN_MS)
    assert (waiting(former) > 0, cycle.moving.is_settled()) == (waits, not waits)


@pytest.mark.parametrize("waits", [True, False])
async def test_a_partition_says_that_it_knows_of_a_growth_when_nothing_waits_that_was_passed_on_before(
    producer: Any, waits: bool
) -> None:
    partition = Partition(producer, number=FORMER, of=BEFORE)
    partition.away = frozenset(range(BEFORE)) if waits else frozenset()
    partition.read_from("first", BEFORE)
    await partition.run(record(FORMER, *ONCE, key=next(key for key in keys_of(0, 1)), offset=1))
    partition.partitionings = Reported(Partitioning(AFTER, BEFORE, secret=SECRET))
    cycle = await partition.run()
    GrowthProgress(partition.context).settle(cycle, None, AT)
    stages = {Stage.FOLLOWING} if waits else {Stage.FOLLOWING, Stage.RUNNING}
    assert partition.partitionings.stages == stages
    assert partition.partitionings.topic_ids == {"first"}, "the topic that it reads"


class Reported(Known):
    """What a lane knows, and what it has told others."""

    def __init__(self, partitioning: Partitioning) -> None:
        super().__init__(partitioning)
        self.stages: set[Stage] = set()
        self.topic_ids: set[str] = set()

    def report(self, topic: str, topic_id: str, partition: int, partitions: int, stage: Stage) -> None:
        self.stages.add(stage)
        self.topic_ids.add(topic_id)
