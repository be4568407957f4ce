"""Rules of tenants in a lane's cycles."""

from __future__ import annotations

import pytest
from support.partition import ANSWER, AT, HOUR, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.wire import partition_for

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


async def test_in_turn_each_topic_has_one_after_the_other(partition: Partition) -> None:
    ruled(partition, distribution="round-robin")
    topics = [b"reminders", b"answers"]
    aims = [("schedule-target-topic", topics[number % 2]) for number in range(24)]
    await partition.run(*(command(due_at(AT), aim, key=b"%d" % number) for number, aim in enumerate(aims)))
    for topic, partitions in ("reminders", 4), ("answers", 7):
        records = sorted(partition.sent(topic), key=lambda record: int(record.key))
        first = records[0].partition
        assert [record.partition for record in records] == [(first + number) % partitions for number in range(12)]


async def test_only_what_is_accepted_has_a_turn(partition: Partition) -> None:
    ruled(partition, distribution="round-robin", max_payload_bytes=3)
    keep = ("schedule-on-conflict", b"keep")
    commands = [
        command(due_at(AT), *TO_REMINDERS, *more, key=b"%d" % number, value=value)
        for number in range(8)
        for more, value in (((), b"ok"), ((keep,), b"ok"), ((), b"large"))
    ]
    await partition.run(*commands)
    records = sorted(partition.sent("reminders"), key=lambda record: int(record.key))
    assert [record.partition for record in records] == [(records[0].partition + number) % 4 for number in range(8)]


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
    left, events = [], []
    for _ in range(4):
        await partition.run()
        left.append(partition.table.pending)
        events += [(event.event, event.id, event.reason) for event in partition.history]
    assert left == [4, 2, 1, 1]
    assert events == [("cancelled", key.decode(), "its tenant was deleted") for key in keys]


async def test_a_removal_takes_no_more_payload_at_a_time_than_a_cycle_may_hold(partition: Partition) -> None:
    tenant, payload = ("schedule-tenant", b"gone"), bytes(1_000)
    for each in range(5):
        await partition.run(command(LATER, *TO_REMINDERS, tenant, key=b"%d" % each, offset=each, value=payload))
    ruled(partition, "gone", TenantState.DELETED)
    partition.max_bytes = 1_500
    left = []
    for _ in range(4):
        await partition.run()
        left.append(partition.table.pending)
    assert left == [3, 1, 0, 0]


async def test_a_removal_that_was_dropped_is_made_again(partition: Partition) -> None:
    tenant = ("schedule-tenant", b"gone")
    await partition.run(*(command(LATER, *TO_REMINDERS, tenant, key=b"%d" % each, offset=each) for each in range(3)))
    ruled(partition, "gone", TenantState.DELETED)
    partition.most_bulk = 2
    await partition.run(applies=False)
    for _ in range(3):
        await partition.run()
    assert partition.table.pending == 0


def outcomes(partition: Partition) -> list[tuple[str, str | None]]:
    results = sorted(partition.results, key=lambda result: result.offset or 0)
    return [(result.outcome.value, result.field) for result in results]


REJECTED = ("rejected", "quota.max_pending")


async def test_pending_schedules_are_counted_exactly_and_only_new_ones_need_room() -> None:
    partition = Partition(FakeProducer(), number=1, of=3)
    mine = [key for key in (b"%d" % number for number in range(30)) if partition_for(key, 3) == 1]
    waits = [command(LATER, *TO_REMINDERS, *ANSWER, key=key, offset=at, partition=1) for at, key in enumerate(mine[:4])]
    await partition.run(*waits[:1])
    ruled(partition, max_pending=8)  # 3 of them in this partition
    cycle = await partition.run(
        *waits[1:], command(due_at(AT + 1), *TO_REMINDERS, *ANSWER, key=mine[0], offset=9, partition=1)
    )
    assert outcomes(partition) == [("scheduled", None), ("scheduled", None), REJECTED, ("updated", None)]
    (reason,) = (result.reason or "" for result in partition.results if result.field is not None)
    assert "may have 8 pending schedules, 3 of them in this partition" in reason
    assert cycle.transaction.over_quota == 1
    await partition.run(now=AT + 1)
    await partition.run(waits[3])
    assert outcomes(partition) == [("scheduled", None)]
    assert partition.table.counts.pending_of("default") == 3


async def test_counts_are_right_after_a_cycle_that_was_dropped_and_after_a_restart(partition: Partition) -> None:
    ruled(partition, max_pending=2)
    await partition.run(command(LATER, *TO_REMINDERS, key=b"a", offset=1))
    await partition.run(command(LATER, *TO_REMINDERS, key=b"b", offset=2), applies=False)
    assert partition.table.counts.pending_of("default") == 1
    partition.restart(partition.table.store, now=AT)
    await partition.run(*(command(LATER, *TO_REMINDERS, *ANSWER, key=b"%d" % at, offset=at) for at in (3, 4)))
    assert outcomes(partition) == 2 * [REJECTED]


async def test_commands_above_a_rate_are_rejected_and_completions_are_not_counted(partition: Partition) -> None:
    ruled(partition, commands_per_second=2)
    cancels = [command(("schedule-command", b"cancel"), *ANSWER, offset=at) for at in range(3)]
    complete = command(
        *(("schedule-command", b"complete"), ("schedule-firing-id", b"a@5"), ("schedule-attempt", b"1")),
        *ANSWER,
        offset=9,
    )
    await partition.run(*cancels, complete)
    too_many = ("rejected", "quota.commands_per_second")
    assert outcomes(partition) == [("not_found", None), ("not_found", None), too_many, ("not_found", None)]
    bulk = command(("schedule-command", b"pause"), ("schedule-id", b"*"), *ANSWER, offset=8)
    await partition.run(bulk)
    assert outcomes(partition) == [too_many]
    await partition.run(*cancels[:1], now=AT + 500)
    assert outcomes(partition) == [too_many]  # it was recorded when the two had just been sent
    await partition.run(command(("schedule-command", b"cancel"), *ANSWER, timestamp=AT + 500), now=AT + 500)
    assert outcomes(partition) == [("not_found", None)]
