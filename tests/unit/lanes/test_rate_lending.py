"""Tokens of rates that lanes lend to each other: between real cycles, by way of records."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import ANSWER, AT, NAMES, SECRET, Partition, command
from support.producing import FakeProducer

from light_scheduler.engine.rate_lending import LAST_PAUSE_MS
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.cycle.budget import Budget
from light_scheduler.lanes.quotas.rate_lending import RateLending
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Shares
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.rate_lending import ALL, RateAsk, RateGrant, RateKind, RateName
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.rate_lending import rate_headers, rate_in

KEY = next(key for key in map(b"%d".__mod__, range(99)) if partition_for(key, 2) == 0)
COMMANDS = RateName(RateKind.COMMANDS, "default")


class Known:
    """What lanes know of their topic."""

    partitioning = Partitioning(2, secret=SECRET)

    def of(self, topic: str) -> Partitioning:
        return self.partitioning


def partition(number: int, over_rate: OverRate = OverRate.REJECT, dialect: str = "native") -> Partition:
    """Return one of the two partitions of a topic whose tenant may send 20 commands a second."""
    made = Partition(FakeProducer(), number=number, of=2, dialect=dialect)
    made.partitionings = Known()
    rules = TenantRules(commands_per_second=20, over_rate=over_rate)
    made.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    return made


def cancels(count: int, now: int = AT) -> list[ConsumerRecord]:
    return [
        command(("schedule-command", b"cancel"), *ANSWER, key=KEY, offset=offset, timestamp=now)
        for offset in range(count)
    ]


def said(from_: Partition, to: int, now: int = AT) -> list[ConsumerRecord]:
    """Return what a cycle wrote for another partition, as that reads it."""
    sent = [record for record in from_.sent(NAMES.commands) if record.partition == to]
    return [
        command(*record.headers, key=None, value=None, partition=to, offset=900 + number, timestamp=now)
        for number, record in enumerate(sent)
    ]


def outcomes(of: Partition) -> list[str]:
    return [result.outcome.value for result in of.results]


def amount_in(record: ConsumerRecord) -> int:
    name, value = record.headers[0]
    found = rate_in(name, value)
    assert isinstance(found, RateGrant)
    return found.amount


async def test_a_command_more_than_the_part_of_its_partition_has_others_asked_whose_tokens_count_once() -> None:
    busy, idle = partition(0), partition(1)
    await busy.run(*cancels(11))
    assert outcomes(busy) == 10 * ["not_found"] + ["rejected"]
    asks = said(busy, 1)
    await idle.run(*asks)
    grants = said(idle, 0)
    assert [amount_in(grant) for grant in grants] == [2_500]
    await busy.run(*grants, *grants, *cancels(5, AT + 50), now=AT + 50)
    assert outcomes(busy) == 3 * ["not_found"] + 2 * ["rejected"], "with half a one that it earned itself"
    await idle.run(*cancels(9))
    assert outcomes(idle) == [], "those belong to the other partition"


async def test_a_lane_that_is_asked_keeps_what_it_needs_and_all_while_it_holds_back() -> None:
    busy, other = partition(0), partition(1)
    ask = RateAsk(COMMANDS, 0, 5, 100_000)
    asked = command(*rate_headers(ask, NAMES.commands, 1, SECRET), key=None, value=None, partition=1)
    other.demand.of(COMMANDS, AT).use(8, AT)
    await other.run(asked)
    assert [amount_in(grant) for grant in said(other, 0)] == [6_000]
    other.demand.of(COMMANDS, AT).hold(AT)
    await other.run(asked, now=AT + 400)
    assert [amount_in(grant) for grant in said(other, 0)] == [0]
    assert outcomes(busy) == []


async def test_what_a_cycle_has_lent_is_not_lent_again_if_it_was_dropped() -> None:
    idle = partition(1)
    ask = RateAsk(COMMANDS, 0, 5, 100_000)
    asked = command(*rate_headers(ask, NAMES.commands, 1, SECRET), key=None, value=None, partition=1)
    overlay, batches = Overlay(idle.table), idle.context.new_batches(AT)
    dropped = RateLending(Transaction(idle.context, overlay, batches, AT))
    dropped.note(asked, ask)
    dropped.answer()
    await idle.run(asked)
    assert [amount_in(grant) for grant in said(idle, 0)] == [0]


def asked_at(at: int, number: int = 5, wanted: int = 100_000) -> ConsumerRecord:
    """Return what partition 0 asks partition 1 for at an instant, by its own clock."""
    ask = RateAsk(COMMANDS, 0, number, wanted)
    headers = rate_headers(ask, NAMES.commands, 1, SECRET)
    return command(*headers, key=None, value=None, partition=1, timestamp=at)


@pytest.mark.parametrize("ahead", [-3_600_000, -2_001, 0, 2_001, 3_600_000])
async def test_a_lane_is_lent_to_whatever_its_clock_says(ahead: int) -> None:
    idle = partition(1)
    await idle.run(asked_at(AT + ahead))
    assert [amount_in(grant) for grant in said(idle, 0)] == [10_000]


async def test_of_asks_that_are_read_at_once_the_last_is_answered() -> None:
    idle = partition(1)
    await idle.run(*(asked_at(AT, number, 1_000 * number) for number in (5, 6, 7)))
    name, value = said(idle, 0)[0].headers[0]
    assert rate_in(name, value) == RateGrant(COMMANDS, 1, 7, 7_000)
    assert len(said(idle, 0)) == 1


async def test_a_partition_that_is_left_alone_is_not_answered() -> None:
    idle = partition(1)
    idle.left_alone = frozenset({0})
    await idle.run(asked_at(AT))
    assert said(idle, 0) == []


async def test_a_partition_that_is_left_alone_is_not_asked_for_tokens_and_no_answer_of_it_is_awaited() -> None:
    busy = partition(0)
    busy.left_alone = frozenset({1})
    cycle = await busy.run(*cancels(11))
    assert outcomes(busy) == 10 * ["not_found"] + ["rejected"]
    assert (said(busy, 1), cycle.rate_lending.ask_at) == ([], AT + LAST_PAUSE_MS), "it looks again whether that is back"
    busy.left_alone = frozenset()
    cycle = await busy.run(*cancels(1))
    assert len(said(busy, 1)) == 1
    assert cycle.rate_lending.ask_at is not None


async def test_forged_records_bring_nothing() -> None:
    busy = partition(0)
    await busy.run(*cancels(11))
    name, value = said(busy, 1)[0].headers[0]
    ask = rate_in(name, value)
    forged = rate_headers(RateGrant(COMMANDS, 1, ask.number, 9_000), NAMES.commands, 0, b"another secret")
    await busy.run(command(*forged, key=None, value=None), *cancels(1))
    assert outcomes(busy) == ["rejected"]


async def test_no_lane_of_the_dialect_of_another_scheduler_asks() -> None:
    busy = partition(0, dialect="karafka")
    cycle = await busy.run()
    cycle.rate_lending.hold(COMMANDS, 20)
    cycle.rate_lending.ask()
    assert (said(busy, 1), cycle.rate_lending.ask_at) == ([], None)


async def test_delayed_commands_go_on_with_tokens_of_others_and_their_lane_asks_again_soon() -> None:
    busy, idle = partition(0, OverRate.DELAY), partition(1, OverRate.DELAY)
    cycle = await busy.run(*cancels(14))
    assert outcomes(busy) == 10 * ["not_found"]
    assert cycle.rate_lending.ask_at is not None
    await idle.run(*said(busy, 1))
    await busy.run(*said(idle, 0), now=AT + 1)
    await busy.run(now=AT + 2)
    assert outcomes(busy) == 2 * ["not_found"]


@pytest.mark.parametrize("tenant", ["default", ALL])
async def test_firings_over_a_cap_have_others_asked(tenant: str) -> None:
    shares = Shares(rate=40) if tenant == ALL else Shares(rates={"default": 40})
    no_part: Any = None
    busy, idle = partition(0), partition(1)
    contexts: list[LaneContext] = []
    for each in (busy, idle):
        context = dataclasses.replace(each.context, shares=shares)
        Budget(context, no_part, lambda: None).follow_tenants(AT)
        contexts.append(context)
    name = RateName(RateKind.FIRINGS, tenant)
    throttle = contexts[0].firing_rates
    before = throttle.total(AT) if tenant == ALL else throttle.allowed(tenant, AT)
    asking = lending_of(contexts[0], busy, AT)
    asking.hold_firings({tenant: 40.0})
    asking.ask()
    (ask,) = contexts[0].memory.demand.of(name, AT).ask(name, 40, asking._part, AT + 5_000).values()
    headers = rate_headers(ask, NAMES.commands, 1, SECRET)
    answering = lending_of(contexts[1], idle, AT + 5_000)
    answering.note(command(*headers, key=None, value=None, partition=1, timestamp=AT + 5_000), ask)
    answering.answer()
    lent = RateGrant(name, 1, ask.number, 4_000)
    lending_of(contexts[0], busy, AT + 5_000).take(lent)
    after = throttle.total(AT + 5_000) if tenant == ALL else throttle.allowed(tenant, AT + 5_000)
    assert (before, after) == (5, 9)


def lending_of(context: LaneContext, of: Partition, now: int) -> RateLending:
    return RateLending(Transaction(context, Overlay(of.table), context.new_batches(now), now))
