"""A commands topic that has grown from four partitions to twelve: what moves, and how commands find it."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from support import partition as supported
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, TO_REMINDERS, Partition, due_at

from light_scheduler.engine.transplant import ANOTHER_LOG
from light_scheduler.errors import LaneError
from light_scheduler.lanes.sweep import AGAIN_MS, Sweep
from light_scheduler.model import EventType, HomeKey, Outcome
from light_scheduler.model.placement import Placement
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.relay import FORWARDED_FROM
from light_scheduler.wire.state import encode_entry, identity, lent_key

BEFORE, AFTER = 4, 12
SECRET = b"of the workers"
GROWN = Placement(AFTER, BEFORE, running=frozenset(range(AFTER)), secret=SECRET)
MOVES = next(f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == 5)
"""A key that belonged to partition 1, and belongs to partition 5."""
STAYS = next(f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == 1)
ONCE = [due_at(AT + HOUR), *TO_REMINDERS]
CANCEL = ("schedule-command", b"cancel")


class Known:
    """What a lane knows."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement

    def of(self, topic: str) -> Placement:
        assert topic == NAMES.commands
        return self.placement


@pytest.fixture
def former(producer: Any) -> Partition:
    """Partition 1, which had the key."""
    partition = Partition(producer, number=1, of=AFTER)
    partition.placements = Known(Placement(BEFORE, secret=SECRET))
    return partition


@pytest.fixture
def home(producer: Any) -> Partition:
    """Partition 5, to which it belongs."""
    partition = Partition(producer, number=5, of=AFTER)
    partition.placements = Known(GROWN)
    return partition


def grown(partition: Partition, placement: Placement = GROWN) -> None:
    partition.placements = Known(placement)


def record(partition: int, *headers: Any, key: bytes | None = MOVES, **fields: Any) -> ConsumerRecord:
    return supported.command(*headers, key=key, partition=partition, **fields)


def passed(partition: Partition, to: int, offset: int = 100) -> list[ConsumerRecord]:
    """Return what a partition has written for another one, as that reads it."""
    sent = [each for each in partition.sent(NAMES.commands) if each.partition == to]
    return [
        supported.command(*each.headers, key=each.key, value=each.value, partition=to, offset=offset + place)
        for place, each in enumerate(sent)
    ]


def mark(record: Any, name: str = FORWARDED_FROM) -> bytes | None:
    return dict(record.headers).get(name)


async def test_the_partition_of_a_key_asks_the_former_one_and_remembers_that_it_did(home: Partition) -> None:
    cycle = await home.run(record(5, CANCEL, *ANSWER), record(5, CANCEL, *ANSWER, offset=43))

    asked = home.sent(NAMES.commands)
    assert [(each.partition, mark(each)) for each in asked] == [
        (1, b"5:42:%d:?12" % AT),
        (1, b"5:43:%d:?12" % AT),
    ]
    assert (cycle.moves, cycle.outcomes, home.results, home.history) == ((2, 0, 0), {}, [], [])
    (lent, _) = [each for each in home.sent(CHANGELOG) if each.key == lent_key(identity("default", MOVES.decode()))]
    assert lent.value is not None


async def test_the_former_partition_moves_the_schedule_ahead_of_the_command(former: Partition, home: Partition) -> None:
    await former.run(record(1, *ONCE, ("schedule-id", b"a"), ("schedule-target-key", b"m"), offset=7))
    grown(former)
    await home.run(record(5, CANCEL, ("schedule-id", b"a"), *ANSWER))
    cycle = await former.run(*passed(home, 1))

    adoption, command = passed(former, 5)
    assert mark(adoption, ADOPTED_FROM) is not None
    assert mark(command) == b"5:42:%d:=12" % AT
    assert (cycle.moves, former.table.pending, former.history) == ((1, 1, 0), 0, [])
    assert [each.value for each in former.sent(CHANGELOG)] == [None]
    cycle = await home.run(adoption, command)
    assert cycle.moves == (0, 0, 1)
    (result,) = home.results
    assert (result.outcome, result.partition, result.offset) == (Outcome.CANCELLED, 5, 42)
    assert [event.event for event in home.history] == [EventType.CANCELLED]
    assert not home.context.placement.is_settled


async def test_a_schedule_is_taken_over_as_it_was(former: Partition, home: Partition) -> None:
    await former.run(record(1, *ONCE, offset=7))
    await former.run(record(1, *ONCE, ("schedule-paused", b"true"), offset=8))
    before = former.table.get("default", MOVES.decode())
    assert before is not None
    grown(former)
    former.sweep = Sweep()
    await former.run()
    (adoption, _) = passed(former, 5, offset=60)

    await home.run(adoption)

    after = home.table.get("default", MOVES.decode())
    assert after is not None
    assert after.schedule == before.schedule
    progress = before.progress
    assert after.progress == msgspec.structs.replace(progress, arrival=progress.arrival - ANOTHER_LOG, swept=60)


async def test_a_command_that_nobody_has_a_schedule_for_comes_back_and_is_carried_out(
    former: Partition, home: Partition
) -> None:
    grown(former)
    await home.run(record(5, *ONCE, *ANSWER))
    await former.run(*passed(home, 1))
    await home.run(*passed(former, 5))

    assert [(result.outcome, result.offset) for result in home.results] == [(Outcome.SCHEDULED, 42)]
    assert home.table.pending == 1
    assert not any(each.key.startswith(b"\x06") and each.value for each in home.sent(CHANGELOG))


async def test_when_all_have_handed_over_only_what_is_not_back_goes_on_to_be_passed_on(home: Partition) -> None:
    other = next(
        f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == 5 and f"k{n}".encode() != MOVES
    )
    await home.run(record(5, *ONCE))
    emptied = [await handed_over(home, number) for number in range(BEFORE)]

    await home.run(*emptied, record(5, CANCEL, *ANSWER, offset=90), record(5, *ONCE, *ANSWER, key=other, offset=91))

    assert [each.key for each in home.sent(NAMES.commands)] == [MOVES]
    assert [(result.outcome, result.offset) for result in home.results] == [(Outcome.SCHEDULED, 91)]


async def handed_over(home: Partition, number: int) -> ConsumerRecord:
    """Return what a partition without schedules says."""
    partition = Partition(type(home.producer)(), number=number, of=AFTER)
    grown(partition)
    partition.sweep = Sweep()
    await partition.run()
    (emptied,) = passed(partition, 5, offset=80 + number)
    assert mark(emptied, EMPTIED) is not None
    return emptied


async def test_slice_by_slice_all_that_belongs_elsewhere_is_handed_over_and_that_is_said(
    former: Partition,
) -> None:
    keys = [f"s{n}".encode() for n in range(200) if partition_for(f"s{n}".encode(), BEFORE) == 1]
    await former.run(*(record(1, *ONCE, key=key, offset=n) for n, key in enumerate(keys)))
    grown(former)
    former.sweep = Sweep()
    moved: dict[bytes, int] = {}
    said = 0
    while not said:
        await former.run(limit=7)
        for each in former.sent(NAMES.commands):
            if mark(each, EMPTIED):
                said += 1
            else:
                moved[each.key] = each.partition

    assert said == AFTER - 1
    assert moved == {key: home for key in keys if (home := partition_for(key, AFTER)) != 1}
    assert former.table.pending == len(keys) - len(moved)
    await former.run()
    assert former.sent(NAMES.commands) == []


async def test_nothing_is_handed_over_before_every_partition_runs(former: Partition) -> None:
    await former.run(record(1, *ONCE))
    grown(former, Placement(AFTER, BEFORE, running=frozenset(range(AFTER - 1)), secret=SECRET))
    former.sweep = Sweep()
    await former.run()
    assert former.sent(NAMES.commands) == []


async def test_a_schedule_of_an_unknown_key_moves_when_a_command_tells_its_key(former: Partition) -> None:
    await former.run(record(1, *ONCE, ("schedule-id", b"a")))
    stored = former.table.get("default", "a")
    assert stored is not None
    assert stored.schedule.home_key == HomeKey.TARGET_KEY
    await former.run()
    entry = msgspec.structs.replace(stored, schedule=msgspec.structs.replace(stored.schedule, home_key=HomeKey.UNKNOWN))
    old = Partition(former.producer, number=1, of=AFTER)
    forget_key(old, entry)
    grown(old)
    old.sweep = Sweep()

    await old.run()
    assert old.sent(NAMES.commands) == []
    await old.run(record(1, CANCEL, ("schedule-id", b"a"), offset=50), now=AT + AGAIN_MS)

    adoption, command, *_ = passed(old, 5)
    assert (mark(adoption, ADOPTED_FROM) is not None, mark(command)) == (True, b"1:50:%d:=12" % AT)


def forget_key(partition: Partition, entry: Any) -> None:
    overlay = Overlay(partition.table)
    overlay.put(identity(entry.schedule.tenant, entry.schedule.id), entry, encode_entry(entry))
    overlay.apply(changelog_offset=0, complete_at=AT)


@pytest.mark.parametrize("damage", ["signature", "value", "repeated"])
async def test_what_no_worker_has_handed_over_is_a_dead_letter(former: Partition, home: Partition, damage: str) -> None:
    await former.run(record(1, *ONCE))
    grown(former)
    former.sweep = Sweep()
    await former.run()
    (adoption, _) = passed(former, 5)
    if damage == "repeated":
        await home.run(adoption)
    else:
        said = (mark(adoption, ADOPTED_FROM) or b"").replace(b"1:", b"2:", 1) if damage == "signature" else None
        headers = [(ADOPTED_FROM, said)] if said else adoption.headers
        value = adoption.value if said else b"\x03" + b"?" * 40
        adoption = supported.command(*headers, key=MOVES, value=value, partition=5, offset=100)

    await home.run(adoption)

    assert [letter.field for letter in home.dead_letters] == [ADOPTED_FROM]


async def test_bulk_commands_are_rejected_while_schedules_move(former: Partition) -> None:
    grown(former)
    await former.run(record(1, CANCEL, ("schedule-id", b"*"), *ANSWER))
    (result,) = former.results
    assert (result.outcome, result.field) == (Outcome.REJECTED, "schedule-id")
    assert "topics grow" in (result.reason or "")


async def test_a_lane_that_is_asked_by_one_who_knows_more_has_to_learn_it_first(
    former: Partition, home: Partition
) -> None:
    await home.run(record(5, CANCEL))
    grown(former, Placement(BEFORE, secret=SECRET))
    with pytest.raises(LaneError, match="knows of 12"):
        await former.run(*passed(home, 1))


async def test_what_stays_is_dealt_with_where_it_is(former: Partition) -> None:
    await former.run(record(1, *ONCE, key=STAYS))
    grown(former)
    await former.run(record(1, CANCEL, *ANSWER, key=STAYS))
    assert [result.outcome for result in former.results] == [Outcome.CANCELLED]
    assert former.sent(NAMES.commands) == []


async def test_a_topic_that_has_settled_passes_nothing_on(home: Partition) -> None:
    grown(home, Placement(AFTER, BEFORE, GROWN.running, frozenset(range(AFTER)), SECRET))
    await home.run(record(5, *ONCE, *ANSWER))
    assert [result.outcome for result in home.results] == [Outcome.SCHEDULED]
    assert home.sent(NAMES.commands) == []
