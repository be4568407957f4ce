"""The most pending schedules of a partition: `max_pending_per_partition`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.moving import CANCEL, passed
from support.partition import ANSWER, AT, HOUR, PARTITION, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.model import DeadLetterCause, EventType, Outcome
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.wire import partition_for

FULL = "quota.max_pending_per_partition"
REASON = (
    "the partition may have 2 pending schedules (max_pending_per_partition), and has reached that: cancel some, or "
    "wait until some have fired"
)
HERE = next(key for key in (b"%d" % number for number in range(20)) if partition_for(key, 2) == 0)


def limited(most: int, number: int = PARTITION, of: int = 1) -> Partition:
    there = Partition(FakeProducer(), number=number, of=of)
    limit(there, most)
    return there


def limit(partition: Partition, most: int) -> None:
    partition.limits = replace(partition.limits, max_pending_per_partition=most)


def schedule(key: bytes, offset: int, *headers: tuple[str, bytes], due: int = AT + HOUR) -> Any:
    return command(due_at(due), *TO_REMINDERS, *ANSWER, *headers, key=key, offset=offset)


@pytest.mark.parametrize("others", [(), (("schedule-tenant", b"other"),)])
async def test_a_new_schedule_beyond_the_limit_is_rejected_by_name(others: tuple[tuple[str, bytes], ...]) -> None:
    partition = limited(2)
    cycle = await partition.run(schedule(b"a", 1, *others), schedule(b"b", 2), schedule(b"c", 3))

    assert cycle.outcomes == {Outcome.SCHEDULED: 2, Outcome.REJECTED: 1}
    assert partition.table.pending == 2
    refused = partition.results[-1]
    assert (refused.id, refused.outcome, refused.field, refused.reason) == ("c", Outcome.REJECTED, FULL, REASON)
    [letter] = partition.dead_letters
    assert (letter.cause, letter.field, letter.reason) == (DeadLetterCause.REJECTED, FULL, REASON)
    assert [event.id for event in partition.history if event.event is EventType.REJECTED] == ["c"]

    cycle = await partition.run(schedule(b"d", 4))  # as the table has it
    assert cycle.outcomes == {Outcome.REJECTED: 1}


async def test_what_is_pending_goes_on_to_be_changed_beyond_the_limit() -> None:
    partition = limited(0)
    await partition.run(*(schedule(b"%d" % number, number) for number in range(3)))
    limit(partition, 1)
    cycle = await partition.run(
        schedule(b"0", 5, due=AT + 2 * HOUR),
        schedule(b"1", 6, ("schedule-on-conflict", b"keep")),
        command(("schedule-command", b"pause"), key=b"2", offset=7),
    )
    assert cycle.outcomes == {Outcome.UPDATED: 1, Outcome.KEPT: 1, Outcome.PAUSED: 1}
    assert partition.table.pending == 3


async def test_room_that_a_cancel_or_a_firing_makes_is_used_within_the_cycle_or_after_it() -> None:
    partition = limited(1)
    cycle = await partition.run(
        schedule(b"a", 1), schedule(b"b", 2), command(CANCEL, key=b"a", offset=3), schedule(b"c", 4, due=AT)
    )
    assert cycle.outcomes == {Outcome.SCHEDULED: 2, Outcome.REJECTED: 1, Outcome.CANCELLED: 1}
    assert len(partition.sent("reminders")) == 1
    assert partition.table.pending == 0
    assert (await partition.run(schedule(b"d", 5))).outcomes == {Outcome.SCHEDULED: 1}


async def test_a_rejected_schedule_takes_nothing_of_the_rate_of_its_tenant() -> None:
    partition = limited(1)
    rules = TenantRules(commands_per_second=0.1, max_pending=100)
    partition.tenants = FixedTenancy(TenantBook([Tenant(name="other", rules=rules)]))
    other = ("schedule-tenant", b"other")
    await partition.run(schedule(b"a", 1), schedule(b"b", 2, other))
    limit(partition, 2)
    assert (await partition.run(schedule(b"c", 3, other))).outcomes == {Outcome.SCHEDULED: 1}


async def test_a_command_is_judged_in_the_partition_that_carries_it_out() -> None:
    key = next(key for key in (b"%d" % number for number in range(20)) if partition_for(key, 2) == 1)
    sent_to, home = Partition(FakeProducer(), number=0, of=2), limited(1, number=1, of=2)
    await sent_to.run(schedule(HERE, 1))
    limit(sent_to, 1)
    await sent_to.run(schedule(key, 2), schedule(key, 3, ("schedule-id", b"another")))
    assert (len(sent_to.dead_letters), sent_to.table.pending) == (0, 1)
    cycle = await home.run(*passed(sent_to, 1))
    assert cycle.outcomes == {Outcome.SCHEDULED: 1, Outcome.REJECTED: 1}
    assert [(each.id, each.outcome, each.partition) for each in home.results] == [
        (key.decode(), Outcome.SCHEDULED, 0),
        ("another", Outcome.REJECTED, 0),
    ]
