"""Commands over the rate of their tenant, delayed: none is lost, doubled or overtaken, and nobody else waits."""

from __future__ import annotations

from collections import Counter

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import ANSWER, AT, HOUR, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.engine import CommandRates
from light_scheduler.lanes.failures.failing_work_search import Kind, Work, WorkFailedError
from light_scheduler.lanes.quotas import delayed_commands
from light_scheduler.lanes.quotas.commands import CommandQuotas
from light_scheduler.model import Command
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import FORWARDED_FROM

LATER = due_at(AT + HOUR)
OTHER = ("schedule-tenant", b"other")
OVER_RATE = "quota.commands_per_second"


@pytest.fixture
def partition() -> Partition:
    found = Partition(FakeProducer())
    ruled(found, over_rate=OverRate.DELAY, commands_per_second=2)
    return found


def ruled(partition: Partition, state: TenantState = TenantState.ACTIVE, **rules: object) -> None:
    tenant = Tenant(name="default", rules=TenantRules(**rules), state=state)  # type: ignore[arg-type]
    partition.tenants.book = TenantBook([tenant])


def cancel(offset: int, *headers: tuple[str, bytes], key: bytes = b"a") -> ConsumerRecord:
    return command(("schedule-command", b"cancel"), *headers, *ANSWER, key=key, offset=offset)


def schedule(offset: int, *headers: tuple[str, bytes], key: bytes = b"a", value: bytes = b"payload") -> ConsumerRecord:
    return command(LATER, *TO_REMINDERS, *headers, *ANSWER, key=key, value=value, offset=offset)


def answers(partition: Partition) -> list[tuple[int | None, str]]:
    return [(result.offset, result.outcome.value) for result in partition.results]


async def seconds(partition: Partition, count: int) -> list[list[tuple[int | None, str]]]:
    """Return what is answered in each of so many seconds without new commands."""
    found = []
    for second in range(1, count + 1):
        await partition.run(now=AT + 1_000 * second)
        found.append(answers(partition))
    return found


async def test_commands_over_the_rate_are_carried_out_later_in_their_order(partition: Partition) -> None:
    cycle = await partition.run(
        *(each(offset) for offset, each in enumerate((schedule, cancel, schedule, schedule, cancel, schedule, cancel)))
    )
    assert answers(partition) == [(0, "scheduled"), (1, "cancelled")]
    assert (cycle.transaction.delayed, cycle.transaction.over_quota, cycle.delaying.waiting) == (5, 0, 5)
    cycle = await partition.run(now=AT + 499)
    assert answers(partition) == []
    assert cycle.delaying.goes_on_at in (AT + 500, AT + 501)
    assert await seconds(partition, 4) == [
        [(2, "scheduled"), (3, "updated")],
        [(4, "cancelled"), (5, "scheduled")],
        [(6, "cancelled")],
        [],
    ]
    assert partition.table.pending == 0
    assert list(partition.table.store.scan(b"l", b"m")) == []


async def test_a_later_command_does_not_overtake_one_that_waits_though_there_is_room(partition: Partition) -> None:
    await partition.run(*(cancel(offset) for offset in range(3)))
    await partition.run(cancel(3, key=b"b"), cancel(4, key=b"b"), now=AT + 500, limit=1)
    assert answers(partition) == [(2, "not_found")]
    await partition.run(cancel(5), now=AT + 1_500, limit=1)
    assert answers(partition) == [(3, "not_found")]
    assert await seconds(partition, 3) == [[(4, "not_found")], [(5, "not_found")], []]


async def test_other_tenants_and_completions_do_not_wait(partition: Partition) -> None:
    complete = command(
        *(("schedule-command", b"complete"), ("schedule-firing-id", b"a@5"), ("schedule-attempt", b"1")),
        *ANSWER,
        offset=9,
    )
    await partition.run(*(cancel(offset) for offset in range(5)), cancel(6, OTHER), complete)
    assert answers(partition) == [(0, "not_found"), (1, "not_found"), (6, "not_found"), (9, "not_found")]


async def test_tenants_take_turns_when_more_goes_on_than_a_cycle_holds(partition: Partition) -> None:
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=1_000)
    partition.tenants.book = TenantBook([Tenant(name=name, rules=rules) for name in ("default", "other")])
    await partition.run(*(cancel(at, *[OTHER][: at % 2]) for at in range(2_400)))
    assert len(partition.results) == 2_000
    served = []
    for _ in range(4):
        await partition.run(now=AT + 1_000, limit=100)
        served += [result.tenant for result in partition.results]
    assert (served.count("default"), served.count("other")) == (200, 200)
    assert 84 <= served[:200].count("other") <= 116


async def test_a_crash_loses_and_doubles_nothing(partition: Partition) -> None:
    await partition.run(*(schedule(offset, key=b"%d" % offset) for offset in range(6)), applies=False)
    partition.command_rates = CommandRates()
    partition.compact()
    partition.restart(partition.table.store, now=AT)
    await partition.run(now=AT + 1_000, applies=False)
    assert answers(partition) == [(2, "scheduled"), (3, "scheduled")]
    partition.compact()
    partition.restart(partition.table.store, now=AT + 1_000)
    assert await seconds(partition, 3) == [[], [(4, "scheduled"), (5, "scheduled")], []]
    assert partition.table.pending == 6


async def test_a_bulk_command_waits_behind_what_it_is_for(partition: Partition) -> None:
    bulk = cancel(4, ("schedule-id", b"*"))
    await partition.run(*(schedule(offset, key=b"%d" % offset) for offset in range(4)), bulk, schedule(5, key=b"5"))
    left = []
    for second in range(1, 5):
        await partition.run(now=AT + 1_000 * second)
        counts = [result.count for result in partition.results if (result.id or "").endswith("*")]
        left.append((partition.table.pending, counts))
    assert left == [(4, []), (5, []), (1, [4]), (1, [])]


async def test_a_command_that_was_passed_on_is_answered_in_the_name_of_the_one_that_was_sent() -> None:
    partition = Partition(FakeProducer(), number=1, of=2)
    ruled(partition, over_rate=OverRate.DELAY, commands_per_second=2)
    mark = (FORWARDED_FROM, b"0:77:%d" % (AT - 5))
    copies = [
        command(("schedule-command", b"cancel"), mark, *ANSWER, key=b"a", offset=offset, partition=1)
        for offset in range(2)
    ]
    await partition.run(*copies)
    assert len(answers(partition)) == 1
    await partition.run(now=AT + 1_000)
    assert [(result.partition, result.offset) for result in partition.results] == [(0, 77)]


async def test_what_is_wrong_is_rejected_when_its_turn_comes_and_costs_no_turn(partition: Partition) -> None:
    wrong = command(due_at(AT - HOUR), ("schedule-on-past", b"reject"), *TO_REMINDERS, *ANSWER, offset=2)
    await partition.run(cancel(0), cancel(1), wrong, cancel(3), cancel(4))
    assert await seconds(partition, 2) == [[(2, "rejected"), (3, "not_found"), (4, "not_found")], []]


async def test_without_the_rule_all_that_waits_goes_on_at_once(partition: Partition) -> None:
    await partition.run(*(cancel(offset) for offset in range(6)))
    partition.tenants.book = TenantBook()
    await partition.run(cancel(6))
    assert answers(partition) == [(offset, "not_found") for offset in range(2, 7)]


async def test_once_the_rule_is_to_reject_what_waits_goes_on_and_what_comes_is_rejected(partition: Partition) -> None:
    await partition.run(*(cancel(offset) for offset in range(4)))
    ruled(partition, commands_per_second=2)
    await partition.run(cancel(4))
    assert [(result.outcome.value, result.field) for result in partition.results] == [("rejected", OVER_RATE)]
    assert await seconds(partition, 2) == [[(2, "not_found"), (3, "not_found")], []]


async def test_what_waits_of_a_tenant_that_is_deleted_is_rejected(partition: Partition) -> None:
    await partition.run(*(cancel(offset) for offset in range(6)))
    ruled(partition, TenantState.DELETED)
    await partition.run()
    assert answers(partition) == [(offset, "rejected") for offset in range(2, 6)]


async def test_more_than_may_wait_is_rejected(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 3)
    cycle = await partition.run(*(cancel(offset) for offset in range(6)))
    assert answers(partition) == [(0, "not_found"), (1, "not_found"), (5, "rejected")]
    assert (partition.results[-1].field, cycle.transaction.over_quota) == (OVER_RATE, 1)
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED_BYTES", 100)
    cycle = await partition.run(cancel(6), now=AT + 1_000)
    assert answers(partition) == [(2, "not_found"), (3, "not_found"), (6, "rejected")]


async def test_a_mark_of_bulk_commands_makes_no_room_for_another_command(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 3)
    marked = Partition(FakeProducer(), number=1, of=2)
    marked.tenants = partition.tenants
    forged = (FORWARDED_FROM, b"0:77:%d:%s" % (AT, b"0" * 32))
    cycle = await marked.run(*(cancel(offset, forged) for offset in range(6)))
    assert Counter(result.field for result in marked.results) == {None: 1, OVER_RATE: 2}
    assert cycle.delaying.waiting == 3


async def test_copies_of_bulk_commands_wait_too_and_not_without_bound(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 3)
    marked = Partition(FakeProducer(), number=1, of=2)
    marked.tenants = partition.tenants
    copy = cancel(9, (FORWARDED_FROM, b"0:77:%d:%s" % (AT, b"0" * 32)), ("schedule-id", b"*"))
    key = next(key for key in (b"%d" % number for number in range(9)) if partition_for(key, 2) == 1)
    cycle = await marked.run(*(cancel(offset, key=key) for offset in range(4)), *[copy] * 6)
    assert (cycle.delaying.waiting, [letter.field for letter in marked.dead_letters]) == (6, [OVER_RATE] * 3)


async def test_one_that_is_too_large_to_be_kept_is_rejected_for_its_payload(partition: Partition) -> None:
    large = command(LATER, *TO_REMINDERS, *ANSWER, value=b"x" * 1_048_500, offset=2)
    await partition.run(cancel(0), cancel(1), large)
    assert (partition.results[-1].offset, partition.results[-1].field) == (2, "payload")


async def test_one_that_fails_is_refused_and_those_behind_it_go_on(partition: Partition) -> None:
    await partition.run(*(cancel(offset) for offset in range(4)))
    cycle = await partition.run(now=AT + 1_000, condemned={Work(Kind.COMMAND, 2): "it failed"})
    assert (cycle.condemned_met, answers(partition)) == ([Work(Kind.COMMAND, 2)], [(3, "not_found")])
    assert "the scheduler fails to carry it out: it failed" in (partition.history[0].reason or "")


async def test_a_cycle_carries_out_no_more_of_them_than_its_transaction_can_hold(partition: Partition) -> None:
    await partition.run(*(schedule(offset, key=b"%d" % offset, value=b"x" * 1_000) for offset in range(9)))
    partition.tenants.book = TenantBook()
    partition.max_bytes = 3_000
    done = []
    for _ in range(4):
        await partition.run()
        done.append(sorted(result.offset or 0 for result in partition.results))
    assert done == [[2, 3, 4], [5, 6, 7], [8], []]


def backlog(count: int) -> list[ConsumerRecord]:
    """Return three commands that are recorded together, and others behind them at the rate of two a second."""
    times = [AT, AT, *(AT + 500 * number for number in range(count - 2))]
    return [
        command(("schedule-command", b"cancel"), *ANSWER, key=b"a", offset=offset, timestamp=time)
        for offset, time in enumerate(times)
    ]


async def test_of_a_backlog_those_wait_that_would_have_waited_when_they_were_sent(partition: Partition) -> None:
    sent, now = backlog(100), AT + HOUR
    cycle = await partition.run(*sent[:60], now=now, is_behind=True)
    assert (answers(partition), cycle.delaying.waiting) == ([(offset, "not_found") for offset in range(59)], 1)
    cycle = await partition.run(*sent[60:], now=now, is_behind=True)
    assert (answers(partition), cycle.delaying.waiting) == ([(offset, "not_found") for offset in range(59, 99)], 1)
    await partition.run(now=now)
    assert answers(partition) == [(99, "not_found")]


async def test_a_cycle_that_reads_a_backlog_goes_on_with_no_more_than_it_may_hold(partition: Partition) -> None:
    cycle = await partition.run(*backlog(12), now=AT + HOUR, limit=4, is_behind=True)
    assert (answers(partition), cycle.delaying.waiting) == ([(offset, "not_found") for offset in range(6)], 6)
    partition.max_bytes = 100
    partition.command_rates = CommandRates()
    cycle = await partition.run(*backlog(12), now=AT + HOUR, is_behind=True)
    assert len(answers(partition)) == 1


async def test_of_a_backlog_all_goes_on_once_there_is_no_rule(partition: Partition) -> None:
    await partition.run(*backlog(5))
    partition.tenants.book = TenantBook()
    cycle = await partition.run(cancel(5), now=AT + HOUR, is_behind=True)
    assert [offset for offset, _ in answers(partition)] == [2, 3, 4, 5]
    assert cycle.delaying.waiting == 0


async def test_one_of_a_backlog_that_fails_is_to_blame_itself(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = CommandQuotas.take

    def fail(self: CommandQuotas, command: Command, tenant: Tenant) -> None:
        if command.offset == 2:
            raise ZeroDivisionError
        take(self, command, tenant)

    monkeypatch.setattr(CommandQuotas, "take", fail)
    with pytest.raises(WorkFailedError) as raised:
        await partition.run(*backlog(9), now=AT + HOUR, is_behind=True)
    assert raised.value.work == Work(Kind.COMMAND, 2)
    await partition.run(*backlog(9), now=AT + HOUR, is_behind=True, condemned={Work(Kind.COMMAND, 2): "it failed"})
    assert [offset for offset, _ in answers(partition)] == [0, 1, 3, 4, 5, 6, 7, 8]


async def test_what_waits_when_the_topic_is_created_again_is_older_than_what_comes_then(partition: Partition) -> None:
    partition.read_from("first", 1)
    partition.read_from("second", 1)
    await partition.run(schedule(40), schedule(41, key=b"b"), schedule(42, key=b"c"))
    partition.read_from("third", 1)
    await partition.run(now=AT + 1_000)
    stored = partition.table.get("default", "c")
    assert stored is not None
    assert stored.schedule.source_offset == 42
    assert answers(partition) == [(42, "scheduled")]
    bulk = command(("schedule-command", b"cancel"), ("schedule-id", b"*"), *ANSWER, key=b"a", offset=3)
    for second in range(2, 5):
        await partition.run(*([bulk] if second == 2 else []), now=AT + second * 1_000)
    assert partition.table.pending == 0
