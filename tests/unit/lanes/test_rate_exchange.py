"""Tokens of rates that lanes lend to each other without a log: in topics of other schedulers, or in several topics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from support.partition import ANSWER, AT, NAMES, Partition, command
from support.producing import FakeProducer

from light_scheduler.engine.rate_lending import ROUND_MS
from light_scheduler.lanes.quotas.rate_exchange import MOST_WAITING, Letter, Post, RateExchange
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateMessage, RateName
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.wire.native import NativeDialect

COMMANDS = RateName(RateKind.COMMANDS, "default")
OWN, OTHER = "http://one", "http://two"


class Foreign(NativeDialect):
    """Commands of a topic that workers do not write to."""

    forwards = False


class Owned:
    """Who has which partitions."""

    own_url = OWN

    def __init__(self, owned: Mapping[str, Mapping[str, list[int]]]) -> None:
        self.owned = owned

    def owners(self) -> Mapping[str, Mapping[str, list[int]]]:
        return self.owned


def partition(number: int, exchange: RateExchange, over_rate: OverRate = OverRate.REJECT) -> Partition:
    """Return one of the two partitions of a topic of another scheduler, whose tenant may send 20 commands a second."""
    made = Partition(FakeProducer(), number=number, of=2)
    made.dialect = Foreign()
    rules = TenantRules(commands_per_second=20, over_rate=over_rate)
    made.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    made.rate_post = exchange.post_of((NAMES.commands, number))
    made.rate_post.open(lambda: None)
    return made


def cancels(count: int, now: int = AT) -> list[object]:
    return [command(("schedule-command", b"cancel"), *ANSWER, offset=offset, timestamp=now) for offset in range(count)]


def outcomes(of: Partition) -> list[str]:
    return [result.outcome.value for result in of.results]


async def test_lanes_of_a_topic_that_workers_do_not_write_to_lend_tokens_to_each_other() -> None:
    exchange = RateExchange(Owned({OWN: {NAMES.commands: [0, 1]}}), [NAMES.commands])
    busy, idle = partition(0, exchange), partition(1, exchange)
    await busy.run(*cancels(11))
    assert outcomes(busy) == 10 * ["not_found"] + ["rejected"]
    assert busy.sent(NAMES.commands) == []
    await idle.run()
    await busy.run(*cancels(5, AT + 50), now=AT + 50)
    assert outcomes(busy) == 3 * ["not_found"] + 2 * ["rejected"], "2.5 borrowed, and half a one that it earned itself"
    await idle.run(*cancels(9))
    assert outcomes(idle) == 7 * ["not_found"] + 2 * ["rejected"]


async def test_topics_share_a_rate_and_one_lends_to_another() -> None:
    exchange = RateExchange(Owned({OWN: {NAMES.commands: [0, 1], "other": [0]}}), [NAMES.commands, "other"])
    busy, idle = partition(0, exchange), exchange.post_of(("other", 0))
    idle.open(lambda: None)
    await busy.run(*cancels(7))
    assert outcomes(busy) == 5 * ["not_found"] + 2 * ["rejected"], "a quarter: half of the half of its topic"
    exchange.deliver(Letter((NAMES.commands, 1), RateMessage(NAMES.commands, RateAsk(COMMANDS, 0, 1, 1))))
    cycle = await busy.run(*cancels(1, AT + ROUND_MS), now=AT + ROUND_MS)
    assert cycle.rate_lending.ask_at is not None
    (message,) = idle.received()
    assert isinstance(message.said, RateAsk)
    assert (message.topic, message.said.partition) == (NAMES.commands, 0)
    idle.send((NAMES.commands, 0), RateGrant(COMMANDS, 0, message.said.number, 4_000))
    idle.send((NAMES.commands, 0), RateGrant(COMMANDS, 0, message.said.number, 4_000))
    await busy.run(*cancels(6, AT + ROUND_MS), now=AT + ROUND_MS)
    assert outcomes(busy).count("not_found") == 4, "once"


async def test_what_was_received_stays_though_the_transaction_of_that_cycle_is_dropped() -> None:
    exchange = RateExchange(Owned({OWN: {NAMES.commands: [0, 1]}}), [NAMES.commands])
    busy, idle = partition(0, exchange, OverRate.DELAY), partition(1, exchange)
    await busy.run(*cancels(12))
    await idle.run()
    await busy.run(commits=False)
    await busy.run(now=AT + 1)
    assert outcomes(busy) == 2 * ["not_found"]


def test_others_are_those_that_a_worker_has_first_of_the_own_topic_and_each_topic_has_an_equal_share() -> None:
    owned = {OWN: {"a": [0, 2], "b": [1]}, OTHER: {"a": [1], "b": [0]}}
    shares = RateExchange(Owned(owned), ["b", "a"]).post_of(("a", 1)).others()
    assert list(shares) == [("a", 2), ("a", 0), ("b", 0), ("b", 1)]
    assert shares == {("a", 2): 1 / 6, ("a", 0): 1 / 6, ("b", 0): 1 / 4, ("b", 1): 1 / 4}


def test_while_workers_are_restarted_to_add_or_remove_a_topic_all_share_rates_among_the_same_topics() -> None:
    owned = Owned({OWN: {"a": [0], "b": []}, OTHER: {"a": [1], "b": [0]}})
    with_it, without = (RateExchange(owned, topics).post_of(("a", 0)) for topics in (["a", "b"], ["a"]))
    assert with_it.topics == without.topics == 2
    assert with_it.others() == without.others() == {("a", 1): 1 / 4, ("b", 0): 1 / 2}
    owned.owned = {OWN: {"a": [0]}, OTHER: {"a": [1]}}
    assert (with_it.topics, without.topics) == (2, 1)
    assert without.others() == {("a", 1): 1 / 2}


async def test_whom_a_lane_may_ask_is_found_out_once_for_each_assignment() -> None:
    owned = Owned({OWN: {NAMES.commands: [0, 1]}})
    exchange = RateExchange(owned, [NAMES.commands])
    lane = partition(0, exchange)
    first, second = await lane.run(), await lane.run()
    assert first.rate_lending._part is second.rate_lending._part
    assert exchange.sharing is exchange.sharing
    assert list(first.rate_lending._part.others) == [(NAMES.commands, 1)]
    owned.owned = {OWN: {NAMES.commands: [0]}, OTHER: {NAMES.commands: [1, 2]}}
    third = await lane.run()
    assert list(third.rate_lending._part.others) == [(NAMES.commands, 1), (NAMES.commands, 2)]
    owned.owned = {OWN: {NAMES.commands: [0]}, OTHER: {NAMES.commands: [1], "other": [0]}}
    fourth = await lane.run()
    assert list(fourth.rate_lending._part.others) == [(NAMES.commands, 1), ("other", 0)]
    assert fourth.rate_lending._part.share == 1 / 4


async def test_letters_for_other_workers_wait_for_the_courier_and_the_oldest_are_lost_first() -> None:
    exchange = RateExchange(Owned({OWN: {"a": [0]}, OTHER: {"a": [1]}}), ["a"])
    post = exchange.post_of(("a", 0))
    for number in range(MOST_WAITING + 5):
        post.send(("a", 1), RateAsk(COMMANDS, 0, number, 1))
    post.send(("a", 7), RateAsk(COMMANDS, 0, 0, 1))
    assert await asyncio.wait_for(exchange.addressees(), 1) == [OTHER]
    assert [letter.message.said.number for letter in exchange.take(OTHER, 2)] == [5, 6]
    assert len(exchange.take(OTHER, 2 * MOST_WAITING)) == MOST_WAITING - 2
    assert exchange.take(OTHER, 1) == []


def test_a_lane_that_takes_a_place_over_keeps_it_when_the_former_one_leaves() -> None:
    exchange = RateExchange(Owned({}), ["a"])
    rings: list[str] = []
    former, latter = Post(exchange, ("a", 0)), Post(exchange, ("a", 0))
    former.open(lambda: rings.append("former"))
    latter.open(lambda: rings.append("latter"))
    former.close()
    message = RateMessage("a", RateAsk(COMMANDS, 1, 1, 1))
    exchange.deliver(Letter(("a", 0), message))
    assert (former.received(), latter.received(), rings) == ([], [message], ["latter"])
    latter.close()
    exchange.deliver(Letter(("a", 0), message))
    assert latter.received() == []
