"""Rules of tenants in a lane's cycles."""

from __future__ import annotations

import pytest
from support.partition import ANSWER, AT, HOUR, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.lanes.removal import Removal
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState

LATER = due_at(AT + HOUR)


@pytest.fixture
def partition() -> Partition:
    return Partition(FakeProducer())


def ruled(
    partition: Partition, name: str = "default", state: TenantState = TenantState.ACTIVE, **rules: object
) -> None:
    partition.tenants.book = TenantBook([Tenant(name=name, rules=TenantRules(**rules), state=state)])  # type: ignore[arg-type]


async def test_a_target_that_is_not_allowed_is_rejected_by_name(partition: Partition) -> None:
    ruled(partition, targets=("orders-*",))
    await partition.run(command(LATER, *TO_REMINDERS, *ANSWER))
    (result,) = partition.results
    assert (result.outcome, result.field) == ("rejected", "schedule-target-topic")
    assert result.reason == "the rules of tenant default do not allow the target reminders"
    assert partition.table.pending == 0


async def test_a_payload_that_is_too_large_for_its_tenant_is_rejected_and_others_are_not(partition: Partition) -> None:
    ruled(partition, max_payload_bytes=3)
    await partition.run(
        command(LATER, *TO_REMINDERS, *ANSWER, value=b"1234"),
        command(LATER, *TO_REMINDERS, value=b"123", key=b"b"),
        command(LATER, *TO_REMINDERS, ("schedule-tenant", b"other"), value=b"1234", key=b"c"),
    )
    assert [(result.outcome, result.field) for result in partition.results] == [("rejected", "payload")]
    assert partition.table.pending == 2


async def test_a_command_without_a_target_has_that_of_its_tenant(partition: Partition) -> None:
    ruled(partition, default_target="reminders")
    await partition.run(command(due_at(AT)), command(due_at(AT), ("schedule-tenant", b"other"), *ANSWER, key=b"b"))
    assert [record.key for record in partition.sent("reminders")] == [b"a"]
    (result,) = partition.results
    assert (result.outcome, result.field) == ("rejected", "schedule-target-topic")


async def test_a_schedule_is_refused_when_its_target_is_no_longer_allowed(partition: Partition) -> None:
    await partition.run(command(LATER, *TO_REMINDERS))
    ruled(partition, targets=("orders-*",))
    await partition.run(now=AT + HOUR)
    assert partition.sent("reminders") == []
    (letter,) = partition.dead_letters
    assert letter.reason == "the rules of tenant default do not allow the target reminders"


async def test_every_command_of_a_deleted_tenant_is_rejected(partition: Partition) -> None:
    ruled(partition, "gone", TenantState.DELETED)
    tenant = ("schedule-tenant", b"gone")
    await partition.run(
        command(LATER, *TO_REMINDERS, *ANSWER, tenant),
        command(("schedule-command", b"cancel"), *ANSWER, tenant),
        command(("schedule-command", b"pause"), ("schedule-id", b"*"), *ANSWER, tenant),
    )
    assert [(each.outcome, each.field, each.reason) for each in partition.results] == 3 * [
        ("rejected", "schedule-tenant", "tenant gone was deleted")
    ]


async def test_all_schedules_of_a_deleted_tenant_are_removed_a_few_at_a_time(partition: Partition) -> None:
    tenant = ("schedule-tenant", b"gone")
    keys = [b"%d" % number for number in range(5)]
    await partition.run(*(command(LATER, *TO_REMINDERS, tenant, key=key, offset=int(key)) for key in keys))
    await partition.run(command(LATER, *TO_REMINDERS, key=b"stays", offset=9))
    ruled(partition, "gone", TenantState.DELETED)
    partition.most_bulk = 2
    removal, left, events = Removal(), [], []
    for _ in range(4):
        await partition.run(removal=removal)
        left.append(partition.table.pending)
        events += [(event.event, event.id, event.reason) for event in partition.history]
    assert left == [4, 2, 1, 1]
    assert events == [("cancelled", key.decode(), "its tenant was deleted") for key in keys]


async def test_a_removal_that_was_dropped_is_made_again(partition: Partition) -> None:
    tenant = ("schedule-tenant", b"gone")
    await partition.run(*(command(LATER, *TO_REMINDERS, tenant, key=b"%d" % each, offset=each) for each in range(3)))
    ruled(partition, "gone", TenantState.DELETED)
    partition.most_bulk = 2
    removal = Removal()
    await partition.run(removal=removal, applies=False)
    for _ in range(3):
        await partition.run(removal=removal)
    assert partition.table.pending == 0
