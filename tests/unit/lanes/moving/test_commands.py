"""A commands topic that has grown: how commands find schedules that move."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from support import partition as supported
from support.moving import AFTER, BEFORE, CANCEL, GROWN, MOVES, ONCE, SECRET, grown, mark, passed, record
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, Partition, due_at
from support.tables import by_due

from light_scheduler.errors import InvalidCommand, LaneError
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.model import EventType, Outcome, Requester
from light_scheduler.model.arrival import LOG
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.handover import ADOPTED_FROM
from light_scheduler.wire.lane_marks import FORWARDED_FROM
from light_scheduler.wire.native import NativeDialect
from light_scheduler.wire.requester import requester_header
from light_scheduler.wire.state import identity, lent_key

from .test_handing_over import handed_over


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
    assert not home.context.partitioning.is_settled


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
    assert after.progress == msgspec.structs.replace(progress, arrival=progress.arrival - LOG, bulk_offset=60)


async def test_schedules_of_a_topic_that_was_created_again_are_taken_over_in_the_order_of_their_arrival(
    former: Partition, home: Partition
) -> None:
    former.read_from("first", BEFORE)
    await former.run(record(1, *ONCE, ("schedule-id", b"of the former topic"), offset=100))
    former.read_from("second", BEFORE)
    await former.run(record(1, *ONCE, ("schedule-id", b"of this topic"), offset=5))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    adoptions = [each for each in passed(former, 5) if each.key is not None]

    await home.run(*adoptions)

    ids = [entry.schedule.id for _, entry in by_due(home.table, "default")]
    assert ids == ["of the former topic", "of this topic"]


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


async def test_a_lane_that_is_asked_by_one_who_knows_more_has_to_learn_it_first(
    former: Partition, home: Partition
) -> None:
    await home.run(record(5, CANCEL))
    grown(former, Partitioning(BEFORE, secret=SECRET))
    with pytest.raises(LaneError, match="knows 12 partitions"):
        await former.run(*passed(home, 1))


DEFAULT_TARGET = TenantBook([Tenant(name="acme", rules=TenantRules(default_target="reminders"))])


@pytest.mark.parametrize("trouble", ["its target is gone", "it cannot be read", "it fails"])
async def test_a_command_that_is_back_and_is_rejected_is_not_awaited_any_more(
    former: Partition, home: Partition, trouble: str
) -> None:
    home.tenants = FixedTenancy(DEFAULT_TARGET)
    await home.run(record(5, due_at(AT + HOUR), ("schedule-tenant", b"acme")))
    assert Overlay(home.table).others.any_lent
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
    assert not Overlay(home.table).others.any_lent


class Refusing(NativeDialect):
    """Of a worker that reads less than the one before."""

    def decode(self, record: CommandRecord) -> Any:
        raise InvalidCommand("schedule-at", "is not known here")


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
    grown(former, Partitioning(BEFORE, secret=secret))
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


async def test_a_topic_that_has_settled_passes_nothing_on(home: Partition) -> None:
    grown(home, Partitioning(AFTER, BEFORE, GROWN.running, frozenset(range(AFTER)), SECRET))
    await home.run(record(5, *ONCE, *ANSWER))
    assert [result.outcome for result in home.results] == [Outcome.SCHEDULED]
    assert home.sent(NAMES.commands) == []


async def test_what_moves_to_a_full_partition_is_taken_over_and_only_new_schedules_are_rejected_there(
    former: Partition, home: Partition
) -> None:
    ids = "a", "b"
    await former.run(*(record(1, *ONCE, ("schedule-id", id.encode()), offset=7 + n) for n, id in enumerate(ids)))
    grown(former)
    for partition in (former, home):
        partition.limits = replace(partition.limits, max_pending_per_partition=1)
    pauses = [record(5, ("schedule-command", b"pause"), ("schedule-id", id.encode()), offset=42) for id in ids]
    new = record(5, *ONCE, *ANSWER, ("schedule-id", b"c"), offset=44)
    await home.run(*pauses, new)
    await former.run(*passed(home, 1))
    assert former.dead_letters == []
    cycle = await home.run(*passed(former, 5))
    assert cycle.outcomes == {Outcome.PAUSED: 2, Outcome.REJECTED: 1}
    assert (former.table.pending, home.table.pending) == (0, 2)
    (result,) = home.results
    assert (result.id, result.field) == ("c", "quota.max_pending_per_partition")
