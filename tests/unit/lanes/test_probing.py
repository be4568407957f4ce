"""Probes in the cycles of a partition: they pass everything, and nothing else shows them."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest
from aiokafka.structs import ConsumerRecord
from support.counting import check_counts
from support.partition import AT, CHANGELOG, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.lanes.context.probe import HOLD_MS, LaneProbe
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.cycle.budget import Budget
from light_scheduler.model import Headers, Shares
from light_scheduler.model.probe import PROBE_IDENTITY, ProbeMark
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.days import days_of
from light_scheduler.tables.loading import BulkLoad
from light_scheduler.wire.probe import NO_VALUE, PROBE, probe_headers
from light_scheduler.wire.state import SCHEDULE_KIND, identity

DUE = AT + HOLD_MS + 1


@pytest.fixture(params=["native", "karafka", "etf1", "skyuk", "light4j"])
def partition(request: pytest.FixtureRequest) -> Partition:
    return Partition(FakeProducer(), dialect=request.param)


def sent(partition: Partition, now: int = AT) -> ConsumerRecord:
    """Return the record of the partition's next probe."""
    number = partition.probe.begin(now)
    assert number is not None
    return of_probe(probe_headers(ProbeMark("sent", number), NAMES.commands, partition.number, SECRET))


def of_probe(headers: Headers, offset: int = 42) -> ConsumerRecord:
    return command(*headers, key=None, value=NO_VALUE, offset=offset)


def read_back(partition: Partition) -> ConsumerRecord:
    """Return the record that the cycle before wrote to the commands topic, as the lane reads it."""
    (record,) = partition.sent(NAMES.commands)
    assert (record.key, record.value, record.partition) == (None, NO_VALUE, partition.number)
    return of_probe(record.headers, 43)


async def probed(partition: Partition, *others: ConsumerRecord) -> None:
    """Have a probe go all the way."""
    stored = await partition.run(sent(partition), *others)
    partition.probe.stored(stored.transaction.probes, AT)
    await partition.run(now=DUE)
    await partition.run(read_back(partition), now=DUE)


def is_unseen(partition: Partition) -> bool:
    return not (partition.history or partition.dead_letters or partition.sent("answers"))


async def test_a_probe_is_stored_fires_to_its_own_partition_and_is_read_there(partition: Partition) -> None:
    stored = await partition.run(sent(partition))
    partition.probe.stored(stored.transaction.probes, AT)
    assert [record.key for record in partition.sent(CHANGELOG)] == [SCHEDULE_KIND + PROBE_IDENTITY]
    assert Overlay(partition.table).get(PROBE_IDENTITY) is not None
    await partition.run(now=AT + 1)
    assert not partition.sent(NAMES.commands)
    await partition.run(now=DUE)
    assert [record.value for record in partition.sent(CHANGELOG)] == [None]
    await partition.run(read_back(partition), now=DUE)
    assert partition.probe.status is not None
    assert partition.probe.status.successes == 1


async def test_nothing_but_the_state_tells_of_a_probe(partition: Partition) -> None:
    cycle = await partition.run(sent(partition))
    assert is_unseen(partition)
    assert partition.table.pending == 0
    assert partition.wakes_at is None
    assert Overlay(partition.table).due(AT, 10, 1_000).probe_due == DUE - 1
    assert len(partition.table.floors) == 0
    assert not list(Overlay(partition.table).stored(b"", b""))
    assert await days_of(partition.table, lambda: True) == {}
    check_counts(partition.table)
    fired = await partition.run(now=DUE)
    check_counts(partition.table)
    assert is_unseen(partition)
    for each in (cycle, fired):
        assert [*each.outcomes, *each.events, *each.delivered, *each.results] == []


async def test_a_probe_leaves_no_row_behind(partition: Partition) -> None:
    store = MemoryStore()
    partition.restart(store, now=AT)
    before = dict(store.scan(b"", b"\xff"))
    await probed(partition)
    await partition.run()
    after = dict(store.scan(b"", b"\xff"))
    assert before.keys() == after.keys()


async def test_the_probe_of_a_former_owner_is_replaced_or_fires_without_a_trace(partition: Partition) -> None:
    await partition.run(sent(partition))
    partition.probe = LaneProbe()
    await partition.run(sent(partition, AT + 10), now=AT + 10)
    assert len(list(partition.table.store.scan(b"p", b"q"))) == 1
    partition.probe = LaneProbe()
    await partition.run(now=DUE + 10)
    assert not list(partition.table.store.scan(b"p", b"q"))
    await partition.run(read_back(partition), now=DUE + 10)
    assert partition.probe.status is None
    assert is_unseen(partition)


async def test_a_probe_that_is_read_once_more_is_carried_out_as_before(partition: Partition) -> None:
    record = sent(partition)
    await partition.run(record, applies=False)
    assert Overlay(partition.table).get(PROBE_IDENTITY) is None
    partition.restart(MemoryStore(), now=AT)
    assert Overlay(partition.table).get(PROBE_IDENTITY) is not None
    assert partition.table.pending == 0
    check_counts(partition.table)
    await partition.run(now=DUE)
    assert read_back(partition)


def forgeries() -> list[Headers]:
    mark = ProbeMark("sent", "0" * 32)
    (genuine,) = probe_headers(mark, NAMES.commands, 0, SECRET)
    (elsewhere,) = probe_headers(mark, NAMES.commands, 1, SECRET)
    (unsigned,) = probe_headers(mark, NAMES.commands, 0, b"another")
    return [[(PROBE, b"now")], [(PROBE, None)], [elsewhere], [unsigned], [genuine, genuine]]


@pytest.mark.parametrize("headers", forgeries())
async def test_what_no_worker_has_written_is_refused(headers: Headers) -> None:
    partition = Partition(FakeProducer())
    await partition.run(of_probe(headers))
    (letter,) = partition.dead_letters
    assert letter.field == PROBE
    assert not partition.sent(CHANGELOG)


async def test_a_genuine_record_with_a_key_is_a_command_with_an_unknown_header() -> None:
    partition = Partition(FakeProducer())
    await partition.run(command(*sent(partition).headers, key=b"a", value=NO_VALUE))
    (letter,) = partition.dead_letters
    assert letter.field == PROBE


async def test_a_probe_takes_nothing_of_a_quota() -> None:
    partition = Partition(FakeProducer())
    rules = TenantRules(max_pending=1)
    partition.tenants = FixedTenancy()
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)], {"default": 0})
    await partition.run(sent(partition), command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a"))
    assert partition.table.pending == 1
    assert not partition.dead_letters


async def test_a_probe_takes_no_room_in_its_partition_and_needs_none() -> None:
    partition = Partition(FakeProducer())
    partition.limits = dataclasses.replace(partition.limits, max_pending_per_partition=1)
    await partition.run(sent(partition), command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a"))
    assert partition.table.pending == 1
    assert not partition.dead_letters
    full = Partition(FakeProducer())
    await full.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a"))
    full.limits = partition.limits
    await full.run(sent(full))
    assert Overlay(full.table).due(AT, 10, 1_000).probe_due is not None
    assert not full.dead_letters


async def test_a_probe_waits_beside_the_schedules_of_users() -> None:
    partition = Partition(FakeProducer())
    soon = AT + HOLD_MS + 100
    await partition.run(sent(partition), command(due_at(soon), *TO_REMINDERS, key=b"a", offset=43))
    scan = Overlay(partition.table).due(AT, 10, 1_000)
    assert (scan.next_due, scan.probe_due) == (soon, DUE - 1)
    await partition.run(now=soon)
    assert len(partition.sent("reminders")) == 1
    assert len(partition.sent(NAMES.commands)) == 1


async def test_a_probe_waits_for_the_cap_of_all_firings_and_its_lane_sleeps_until_then() -> None:
    partition = Partition(FakeProducer())
    await partition.run(sent(partition), command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a", offset=43))
    overlay = Overlay(partition.table)
    entry = overlay.get(identity("default", "a"))
    assert entry is not None
    context = dataclasses.replace(partition.context, shares=Shares({}, 1.0, {}))
    budget = Budget(context, cast(Any, None), lambda: None)
    while (turns := budget.turns(DUE, 10, 1_000)).most > 0:
        budget.charge([entry] * turns.most, DUE)
    due = budget.take_due(overlay, DUE, turns)
    assert (due.entries, due.probe_due, budget.next_due) == ([], None, AT + HOUR)
    wakes_at = budget.next_turn(due, DUE)
    assert wakes_at is not None
    assert DUE < wakes_at < AT + HOUR


async def test_a_record_of_a_probe_concerns_nothing_that_is_prepared_ahead() -> None:
    partition = Partition(FakeProducer())
    assert not partition.context.concerns(sent(partition), {PROBE_IDENTITY, identity("default", "a")})


async def test_a_table_that_is_filled_anew_has_the_probe_and_does_not_count_it() -> None:
    partition = Partition(FakeProducer())
    await partition.run(sent(partition), command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a", offset=43))
    table = ScheduleTable(MemoryStore())
    load = BulkLoad(table)
    load.add(partition.changelog)
    for _ in load.write(changelog_offset=len(partition.changelog)):
        pass
    await load.finish(complete_at=AT)
    assert table.pending == 1
    check_counts(table)
    partition.table = table
    await partition.run(now=DUE)
    assert read_back(partition)
