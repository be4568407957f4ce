"""A commands topic that has grown: schedules that stay where they are."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest
from support import partition as supported
from support.moving import AFTER, BEFORE, CANCEL, MOVES, ONCE, STAYS, grown, mark, passed, record
from support.partition import ANSWER, AT, NAMES, Partition

from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.model import HomeKey, Outcome
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import EMPTIED

from .test_handing_over import forget_key


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
    assert not Overlay(home.table).others.any_lent


async def test_a_command_that_is_rejected_for_what_is_too_large_to_be_moved_makes_no_second_schedule(
    former: Partition, home: Partition
) -> None:
    former.topics[NAMES.commands] = supported.topic(AFTER, 600)
    await former.run(record(1, *ONCE, value=bytes(550)))
    grown(former)
    rules = TenantRules(commands_per_second=0.001)
    former.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    former.command_rates.take("default", 0.001, AT, AT)
    former.command_rates.commit()
    await home.run(record(5, *ONCE, *ANSWER))

    await former.run(*passed(home, 1))
    assert [(result.outcome, result.offset, result.field) for result in former.results] == [
        (Outcome.REJECTED, 42, "quota.commands_per_second")
    ]
    assert [letter.field for letter in former.dead_letters] == ["quota.commands_per_second"]
    await home.run(*passed(former, 5))

    assert (former.table.pending, home.table.pending, home.results) == (1, 0, [])
    assert not Overlay(home.table).others.any_lent


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
    assert not Overlay(home.table).others.any_lent


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
    assert not Overlay(home.table).others.any_lent


async def test_what_stays_is_dealt_with_where_it_is(former: Partition) -> None:
    await former.run(record(1, *ONCE, key=STAYS))
    grown(former)
    await former.run(record(1, CANCEL, *ANSWER, key=STAYS))
    assert [result.outcome for result in former.results] == [Outcome.CANCELLED]
    assert former.sent(NAMES.commands) == []
