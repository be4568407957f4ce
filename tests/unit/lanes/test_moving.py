"""A commands topic that has grown from four partitions to twelve: what moves, and how commands find it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from msgspec import UNSET
from support import partition as supported
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, TO_REMINDERS, Partition, due_at

from light_scheduler.engine.transplant import ANOTHER_LOG
from light_scheduler.errors import InvalidCommand, LaneError
from light_scheduler.lanes import delayed_commands
from light_scheduler.lanes.caution import Kind, Work
from light_scheduler.lanes.cycle import Cycle
from light_scheduler.lanes.handover import AGAIN_MS, SOON_MS, HandoverPass
from light_scheduler.lanes.removal import Removal
from light_scheduler.lanes.tenancy import FixedTenancy
from light_scheduler.model import EventType, HomeKey, Outcome, Requester
from light_scheduler.model.placement import Placement
from light_scheduler.model.tenant_rules import TENANT_DELETED, OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.tables import Overlay
from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.json_form import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.lane_marks import FORWARDED_FROM
from light_scheduler.wire.native import NativeDialect
from light_scheduler.wire.requester import requester_header
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
    """Return what a header says, without its signature."""
    value = dict(record.headers).get(name)
    return value and value.rpartition(b":")[0]


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
    assert (cycle.moves, former.table.pending) == ((1, 1, 0), 0)
    (event,) = former.history
    assert (event.event, event.id, event.version, event.due) == (EventType.MOVED, "a", 1, AT + HOUR)
    assert (event.reason, event.partition) == ("handed over to partition 5", 1)
    assert [each.value for each in former.sent(CHANGELOG)] == [None]
    cycle = await home.run(adoption, command)
    assert cycle.moves == (0, 0, 1)
    (result,) = home.results
    assert (result.outcome, result.partition, result.offset) == (Outcome.CANCELLED, 5, 42)
    assert [event.event for event in home.history] == [EventType.CANCELLED]
    assert not home.context.placement.is_settled


async def test_who_sends_the_command_that_a_schedule_moves_ahead_of_has_not_asked_for_that(former: Partition) -> None:
    await former.run(record(1, *ONCE, offset=7))
    grown(former)
    sent = []
    for offset, at in ((8, "never"), (9, AT + HOUR)):
        value = msgspec.json.encode({"id": MOVES.decode(), "trigger": {"at": at}, "target": {"topic": "reminders"}})
        by = requester_header(Requester("shop", "192.0.2.7"), value, supported.SECRET)
        sent.append(record(1, (CONTENT_TYPE, JSON_COMMAND), by, value=value, offset=offset))

    await former.run(*sent)

    assert [(event.event, event.by) for event in former.history] == [
        (EventType.REJECTED, "shop"),
        (EventType.MOVED, UNSET),
    ]


async def test_a_schedule_is_taken_over_as_it_was(former: Partition, home: Partition) -> None:
    await former.run(record(1, *ONCE, offset=7))
    await former.run(record(1, *ONCE, ("schedule-paused", b"true"), offset=8))
    before = former.table.get("default", MOVES.decode())
    assert before is not None
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    (adoption, _) = passed(former, 5, offset=60)

    await home.run(adoption)

    after = home.table.get("default", MOVES.decode())
    assert after is not None
    assert after.schedule == before.schedule
    progress = before.progress
    assert after.progress == msgspec.structs.replace(progress, arrival=progress.arrival - ANOTHER_LOG, bulk_offset=60)


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
    partition.handover = HandoverPass()
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
    former.handover = HandoverPass()
    moved: dict[bytes, int] = {}
    told: list[tuple[str, str]] = []
    said = 0
    while not said:
        await former.run(limit=7)
        told += [(event.id or "", f"{event.event} {event.reason}") for event in former.history]
        for each in former.sent(NAMES.commands):
            if mark(each, EMPTIED):
                said += 1
            else:
                moved[each.key] = each.partition

    assert said == AFTER - 1
    assert moved == {key: home for key in keys if (home := partition_for(key, AFTER)) != 1}
    assert sorted(told) == sorted(
        (key.decode(), f"moved handed over to partition {home}") for key, home in moved.items()
    )
    assert former.table.pending == len(keys) - len(moved)
    await former.run()
    assert former.sent(NAMES.commands) == []


async def test_nothing_is_handed_over_before_every_partition_runs(former: Partition) -> None:
    await former.run(record(1, *ONCE))
    grown(former, Placement(AFTER, BEFORE, running=frozenset(range(AFTER - 1)), secret=SECRET))
    former.handover = HandoverPass()
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
    old.handover = HandoverPass()

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
    former.handover = HandoverPass()
    await former.run()
    (adoption, _) = passed(former, 5)
    if damage == "repeated":
        await home.run(adoption)
    else:
        said = dict(adoption.headers)[ADOPTED_FROM].replace(b"1:", b"2:", 1) if damage == "signature" else None
        headers = [(ADOPTED_FROM, said)] if said else adoption.headers
        value = adoption.value if said else b"\x03" + b"?" * 40
        adoption = supported.command(*headers, key=MOVES, value=value, partition=5, offset=100)

    await home.run(adoption)

    assert [letter.field for letter in home.dead_letters] == [ADOPTED_FROM]


async def test_a_lane_that_is_asked_by_one_who_knows_more_has_to_learn_it_first(
    former: Partition, home: Partition
) -> None:
    await home.run(record(5, CANCEL))
    grown(former, Placement(BEFORE, secret=SECRET))
    with pytest.raises(LaneError, match="knows 12 partitions"):
        await former.run(*passed(home, 1))


async def test_what_was_handed_over_late_is_adopted_where_it_goes_on_from_since_the_topic_has_grown_again(
    former: Partition, home: Partition
) -> None:
    """The partition that it was handed over to reads it when the key does not belong there any more."""
    again = Placement(2 * AFTER, AFTER, running=frozenset(range(2 * AFTER)), secret=SECRET)
    key = next(
        f"k{n}".encode()
        for n in count()
        if partition_for(f"k{n}".encode(), AFTER) == 5 != partition_for(f"k{n}".encode(), 2 * AFTER)
    )
    await former.run(record(1, *ONCE, key=key))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    adoption, _ = passed(former, 5)
    home.topics[NAMES.commands] = supported.topic(2 * AFTER)
    grown(home, replace(again, settled=frozenset({5})))
    with pytest.raises(LaneError, match="does not know yet"):
        await home.run(adoption)
    grown(home, again)
    await home.run(adoption)
    assert home.table.pending == 1
    home.handover = HandoverPass()
    await home.run()
    (adoption, _) = passed(home, partition_for(key, 2 * AFTER))
    assert mark(adoption, ADOPTED_FROM) == b"5"


async def test_what_a_sender_has_given_the_key_of_another_former_partition_stays_where_the_sender_put_it(
    former: Partition,
) -> None:
    """The order of its commands is that of this log, and the partition that the key belonged to never knew of it."""
    key = next(
        f"k{n}".encode()
        for n in count()
        if partition_for(f"k{n}".encode(), BEFORE) == 2 and partition_for(f"k{n}".encode(), AFTER) == 6
    )
    id = ("schedule-id", b"a")
    await former.run(record(1, *ONCE, id, offset=1), record(1, *ONCE, id, key=key, offset=2))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    assert {mark(each, EMPTIED) for each in former.sent(NAMES.commands)} == {b"1:12"}
    await former.run(record(1, CANCEL, id, *ANSWER, key=key, offset=3))
    assert [(result.outcome, result.offset) for result in former.results] == [(Outcome.CANCELLED, 3)]
    assert former.sent(NAMES.commands) == []


async def test_what_is_too_large_to_be_moved_stays_and_who_asked_for_it_waits_no_longer(
    former: Partition, home: Partition
) -> None:
    former.topics[NAMES.commands] = supported.topic(AFTER, 600)
    await former.run(record(1, *ONCE, value=bytes(550)))
    grown(former)
    await home.run(record(5, CANCEL, *ANSWER))

    await former.run(*passed(home, 1))
    assert [(result.outcome, result.partition, result.offset) for result in former.results] == [
        (Outcome.CANCELLED, 5, 42)
    ]
    cycle = await home.run(*passed(former, 5))

    assert (cycle.outcomes, home.results, home.dead_letters) == ({}, [], [])
    assert not Overlay(home.table).any_lent


async def test_a_command_that_is_rejected_for_what_is_too_large_to_be_moved_makes_no_second_schedule(
    former: Partition, home: Partition
) -> None:
    former.topics[NAMES.commands] = supported.topic(AFTER, 600)
    await former.run(record(1, *ONCE, value=bytes(550)))
    grown(former)
    rules = TenantRules(commands_per_second=0.001)
    former.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    former.rates.take("default", 0.001, AT, AT)
    former.rates.commit()
    await home.run(record(5, *ONCE, *ANSWER))

    await former.run(*passed(home, 1))
    assert [(result.outcome, result.offset, result.field) for result in former.results] == [
        (Outcome.REJECTED, 42, "quota.commands_per_second")
    ]
    assert [letter.field for letter in former.dead_letters] == ["quota.commands_per_second"]
    await home.run(*passed(former, 5))

    assert (former.table.pending, home.table.pending, home.results) == (1, 0, [])
    assert not Overlay(home.table).any_lent


@pytest.mark.parametrize("belongs_to", [1, 9])
async def test_a_command_under_another_key_than_its_schedule_is_carried_out_where_that_is_and_awaited_no_longer(
    former: Partition, home: Partition, belongs_to: int
) -> None:
    another = next(f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == belongs_to)
    await former.run(record(1, *ONCE, ("schedule-id", b"a"), key=another))
    grown(former)
    await home.run(record(5, CANCEL, ("schedule-id", b"a"), *ANSWER))
    await former.run(*passed(home, 1))
    results = former.results
    if belongs_to != former.number:
        third = Partition(type(home.producer)(), number=belongs_to, of=AFTER)
        grown(third)
        to_third, to_home = passed(former, belongs_to), passed(former, 5)
        await third.run(*to_third)
        results = third.results
    else:
        to_home = passed(former, 5)

    cycle = await home.run(*to_home)

    assert [result.outcome for result in results] == [Outcome.CANCELLED]
    assert (cycle.outcomes, home.results, home.dead_letters) == ({}, [], [])
    assert not Overlay(home.table).any_lent


async def test_a_command_without_a_key_for_a_schedule_of_an_unknown_key_is_awaited_no_longer(
    former: Partition, home: Partition
) -> None:
    id = ("schedule-id", MOVES)
    await former.run(record(1, *ONCE, id, key=STAYS))
    stored = former.table.get("default", MOVES.decode())
    assert stored is not None
    forget_key(
        former,
        msgspec.structs.replace(stored, schedule=msgspec.structs.replace(stored.schedule, home_key=HomeKey.UNKNOWN)),
    )
    grown(former)
    await home.run(record(5, CANCEL, id, *ANSWER, key=None))
    await former.run(*passed(home, 1))
    assert [result.outcome for result in former.results] == [Outcome.CANCELLED]
    await home.run(*passed(former, 5))
    assert not Overlay(home.table).any_lent


DEFAULT_TARGET = TenantBook([Tenant(name="acme", rules=TenantRules(default_target="reminders"))])


@pytest.mark.parametrize("trouble", ["its target is gone", "it cannot be read", "it fails"])
async def test_a_command_that_is_back_and_is_rejected_is_not_awaited_any_more(
    former: Partition, home: Partition, trouble: str
) -> None:
    home.tenants = FixedTenancy(DEFAULT_TARGET)
    await home.run(record(5, due_at(AT + HOUR), ("schedule-tenant", b"acme")))
    assert Overlay(home.table).any_lent
    grown(former)
    former.tenants = FixedTenancy(DEFAULT_TARGET)
    await former.run(*passed(home, 1))
    (back,) = passed(former, 5)
    if trouble == "its target is gone":
        home.tenants = FixedTenancy()
    elif trouble == "it cannot be read":
        home.dialect = Refusing()
    condemned = {Work(Kind.COMMAND, back.offset): "why"} if trouble == "it fails" else {}

    await home.run(back, condemned=condemned)

    assert len(home.dead_letters) == 1
    assert not Overlay(home.table).any_lent


class Refusing(NativeDialect):
    """Of a worker that reads less than the one before."""

    def decode(self, record: CommandRecord) -> Any:
        raise InvalidCommand("schedule-at", "is not known here")


async def test_a_schedule_whose_tenant_was_deleted_is_removed_where_it_is_moved_to(
    former: Partition, home: Partition
) -> None:
    await former.run(record(1, *ONCE, ("schedule-tenant", b"acme")))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    (adoption, _) = passed(former, 5)
    home.tenants = FixedTenancy(TenantBook([Tenant(name="acme", state=TenantState.DELETED)]))
    removal = Removal()
    await home.run(removal=removal)

    cycle = await home.run(adoption, removal=removal)

    assert [(event.event, event.id, event.reason) for event in home.history] == [
        (EventType.CANCELLED, MOVES.decode(), TENANT_DELETED)
    ]
    assert (cycle.moves, home.table.pending) == ((0, 0, 1), 0)


async def test_schedules_that_stay_bound_how_many_a_cycle_looks_at_by_their_payloads(former: Partition) -> None:
    await former.run(
        *(record(1, *ONCE, ("schedule-id", b"%d" % n), key=STAYS, value=bytes(500_000)) for n in range(20))
    )
    grown(former)
    cycle = Cycle(former.context, Overlay(former.table), former.context.new_batches(AT), AT)
    handover = HandoverPass()
    assert handover.is_due(cycle.moving, AT)
    slice = handover.advance(cycle.moving, Overlay(former.table), 5_000)
    assert not slice.is_last


@pytest.mark.parametrize(
    ("said", "value"),
    [
        pytest.param(b"0:1:%d:?9999:" % AT + b"0" * 64, b"x", id="a question from who knows of more partitions"),
        pytest.param(b"9:1:%d:?12:" % AT + b"0" * 64, b"{", id="a question from a partition that is not there"),
        pytest.param(b"1:1:%d:=12:" % AT + b"0" * 64, b"x", id="a command that is back"),
    ],
)
@pytest.mark.parametrize("secret", [SECRET, b""])
async def test_what_no_worker_has_passed_on_is_a_dead_letter(
    former: Partition, said: bytes, value: bytes, secret: bytes
) -> None:
    grown(former, Placement(BEFORE, secret=secret))
    await former.run(record(1, *ONCE, (FORWARDED_FROM, said), value=value))
    assert [letter.field for letter in former.dead_letters] == [FORWARDED_FROM]
    assert former.sent(NAMES.commands) == []


@pytest.mark.parametrize("change", ["value", "header", "mark"])
async def test_what_a_worker_has_passed_on_is_refused_with_a_change(
    former: Partition, home: Partition, change: str
) -> None:
    await home.run(record(5, *ONCE))
    grown(former)
    (asked,) = passed(home, 1)
    headers, value = list(asked.headers), asked.value
    if change == "value":
        value = b"another"
    elif change == "header":
        headers.insert(0, ("schedule-id", b"another"))
    else:
        headers.append((FORWARDED_FROM, b"1:2:3"))
    await former.run(supported.command(*headers, key=MOVES, value=value, partition=1, offset=100))
    assert [letter.field for letter in former.dead_letters] == [FORWARDED_FROM]


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


def delay_above(partition: Partition, rate: float) -> None:
    """Have commands of the tenant above a rate (a second, of all partitions) be delayed; nobody lends tokens."""
    partition.left_alone = frozenset(range(AFTER)) - {partition.number}
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=rate)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])


async def test_a_delayed_command_is_passed_on_before_its_partition_says_that_it_has_handed_over_everything(
    former: Partition, home: Partition
) -> None:
    delay_above(former, BEFORE)
    await former.run(record(1, *ONCE, offset=1), record(1, *ONCE, offset=2), record(1, CANCEL, offset=3))
    grown(former)
    former.handover = HandoverPass()

    await home.run(record(5, CANCEL, *ANSWER, offset=101))
    (question,) = passed(home, 1)
    await former.run(question)
    assert passed(former, 5) == []

    await former.run(now=AT + 3_100)
    adoption, update, first, second = passed(former, 5, offset=102)
    assert mark(adoption, ADOPTED_FROM) is not None
    assert [mark(each) for each in (update, first)] == [b"1:2:%d:=12" % AT, b"1:3:%d:=12" % AT]
    await home.run(adoption, update, first, second)
    assert [(result.offset, result.outcome) for result in home.results] == [(101, Outcome.NOT_FOUND)]
    await former.run(now=AT + SOON_MS)
    assert [mark(each, EMPTIED) is not None for each in passed(former, 5)] == [True]


async def test_a_command_that_is_back_and_cannot_be_delayed_is_back_all_the_same(
    former: Partition, home: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(former)
    await home.run(*(record(5, CANCEL, *ANSWER, offset=offset) for offset in range(3)))
    await former.run(*passed(home, 1))
    back = passed(former, 5)
    delay_above(home, AFTER)
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 1)
    await home.run(*back)
    assert [(result.offset, result.outcome.value) for result in home.results] == [(1, "rejected"), (2, "rejected")]
    await home.run(now=AT + 1_000)
    assert [(result.offset, result.outcome.value) for result in home.results] == [(0, "not_found")]
    assert not Overlay(home.table).any_lent


async def test_schedules_are_not_gone_through_again_while_delayed_commands_wait(former: Partition) -> None:
    delay_above(former, BEFORE / 60)
    await former.run(*(record(1, *ONCE, key=STAYS, offset=offset) for offset in range(3)))
    grown(former)
    former.handover = handover = HandoverPass()
    await former.run()
    cycle = await former.run(now=AT + SOON_MS)
    assert cycle.delaying.waiting == 2
    assert not handover.is_due(cycle.moving, AT + 10 * SOON_MS)

    await former.run(now=AT + 181_000)
    assert former.sent(NAMES.commands) == []
    await former.run(now=AT + 362_000)
    assert {mark(each, EMPTIED) for each in former.sent(NAMES.commands)} == {b"1:12"}


async def test_schedules_wait_with_a_bulk_command_that_is_delayed_and_do_not_escape_it(former: Partition) -> None:
    delay_above(former, BEFORE)
    bulk = (FORWARDED_FROM, b"0:77:%d:%s" % (AT, b"0" * 32))
    await former.run(
        *(
            record(1, *ONCE, ("schedule-tenant", tenant), offset=offset)
            for offset, tenant in enumerate((b"default", b"b"))
        ),
        *(record(1, *ONCE, key=STAYS, offset=offset) for offset in (2, 3)),
        record(1, CANCEL, ("schedule-id", b"*"), bulk, offset=4),
    )
    grown(former)
    delay_above(former, AFTER)
    former.handover = HandoverPass()
    await former.run()
    assert [mark(each, ADOPTED_FROM) is not None for each in passed(former, 5)] == [True], "that of another tenant"
    for second in range(1, 5):
        await former.run(now=AT + 1_000 * second)
        assert all(mark(each, ADOPTED_FROM) is None for each in passed(former, 5)), "only the command itself follows"
    assert former.table.pending == 0


async def test_a_tenant_that_always_sends_more_than_its_rate_does_not_keep_a_topic_unsettled(former: Partition) -> None:
    delay_above(former, BEFORE)
    await former.run(*(record(1, *ONCE, key=key, offset=offset) for offset, key in enumerate((MOVES, STAYS, STAYS))))
    grown(former)
    delay_above(former, AFTER)
    former.handover = HandoverPass()
    told = []
    for second in range(30):
        now = AT + 1_000 * second
        more = [record(1, *ONCE, key=STAYS, offset=10 + 2 * second + each, timestamp=now) for each in range(2)]
        cycle = await former.run(*more, now=now)
        assert cycle.delaying.waiting > second
        told += passed(former, 5)
    assert [(mark(each, ADOPTED_FROM) is not None, mark(each, EMPTIED) is not None) for each in told] == [
        (True, False),
        (False, True),
    ]


async def test_commands_above_a_rate_wait_in_a_partition_that_has_not_got_its_part_of_it_yet(
    former: Partition, home: Partition
) -> None:
    home.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(commands_per_second=AFTER))])
    grown(home, replace(GROWN, running=frozenset(range(BEFORE, AFTER))))
    grown(former)
    await former.run(record(1, CANCEL, *ANSWER))
    cycle = await home.run(*passed(former, 5))
    assert (home.results, cycle.delaying.waiting) == ([], 1)

    grown(home)
    await home.run(now=AT + 100)
    assert home.results == []
    await home.run(now=AT + 1_200)
    assert [result.outcome for result in home.results] == [Outcome.NOT_FOUND]

    grown(home, replace(GROWN, settled=frozenset(range(AFTER))))
    await home.run(
        *(record(5, CANCEL, *ANSWER, offset=offset, timestamp=AT + 1_300) for offset in (50, 51)), now=AT + 1_300
    )
    assert [result.outcome for result in home.results] == 2 * [Outcome.REJECTED]
