"""Tokens of a rate that lanes lend to each other: never more than the buckets allow, and where they are needed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import accumulate, count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.engine.rate_lending import (
    CROWD,
    LAST_PAUSE_MS,
    MEMORY_MS,
    REST_MS,
    ROUND_MS,
    THOUSANDTHS,
    Demand,
    OwnPart,
    RateDemand,
)
from light_scheduler.engine.token_bucket import BORROWED_MS, TokenBucket
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName

AT = 1_767_225_600_000
NAME = RateName(RateKind.FIRINGS, "shop")
STEP_MS = 10
TOPIC = "commands"


def own_part(number: int, partitions: int) -> OwnPart:
    """Return the part of one of the partitions of the only topic."""
    others = [(number + step) % partitions for step in range(1, partitions)]
    return OwnPart((TOPIC, number), 1 / partitions, {(TOPIC, other): 1 / partitions for other in others})


Demanded = Callable[[int, float], float]
"""Tells how many commands a second a partition is sent, at a time (s since the beginning)."""


class Lane:
    """A partition of a model of a topic: real decisions, and work that arrives at random."""

    def __init__(self, part: OwnPart, rate: float, saved_s: float) -> None:
        self.part = part
        self.number = part.place[1]
        self.bucket = TokenBucket(rate * part.share, AT, saved_s, 1 - saved_s)
        self.demand = Demand()
        self.backlog = 0.0
        self.cycle = 0


class Topic:
    """Partitions that lend tokens to each other; a record is read 20 to 80 ms after it was written.

    What is above the rate waits if it `delays`, else it is rejected.
    """

    def __init__(self, rate: float, partitions: int, *, delays: bool, saved_s: float = 1.0, seed: int = 1) -> None:
        self.rate, self.delays = rate, delays
        self.lanes = [Lane(own_part(number, partitions), rate, saved_s) for number in range(partitions)]
        self.random = Random(seed)
        self.under_way: list[tuple[int, int, int, RateAsk | RateGrant]] = []
        self.number = count()
        self.now = AT
        self.done: list[int] = []
        """How much was carried out in each step."""
        self.messages = 0

    def run(self, seconds: float, demanded: Demanded) -> None:
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            self.now += STEP_MS
            while self.under_way and self.under_way[0][0] <= self.now:
                _, _, to, said = heapq.heappop(self.under_way)
                self.read(self.lanes[to], said)
            self.done.append(sum(self.carry_out(lane, demanded) for lane in self.lanes))

    def carry_out(self, lane: Lane, demanded: Demanded) -> int:
        wanted = demanded(lane.number, (self.now - AT) / 1_000) * STEP_MS / 1_000
        arrived = int(wanted) + (self.random.random() < wanted % 1)
        lane.backlog = arrived + (lane.backlog if self.delays else 0)
        if not lane.backlog:
            return 0
        lane.cycle += 1
        done = int(min(lane.backlog, lane.bucket.available(self.now)))
        lane.bucket.spend(done)
        lane.demand.use(done, self.now)
        lane.backlog -= done
        is_low = not self.delays and lane.demand.is_low(lane.bucket.available(self.now), self.now)
        if lane.backlog:
            lane.demand.hold(self.now)
        if lane.backlog or is_low:
            lane.demand.need(self.now, lane.cycle)
            for (_, to), ask in lane.demand.ask(NAME, self.rate, lane.part, self.now).items():
                self.send(to, ask)
        return done

    def read(self, lane: Lane, said: RateAsk | RateGrant) -> None:
        if isinstance(said, RateAsk):
            lent = lane.bucket.lend(said.wanted / THOUSANDTHS, lane.demand.kept(self.now), self.now)
            grant = RateGrant(NAME, lane.number, said.number, int(lent * THOUSANDTHS))
            self.send(said.partition, grant)
        else:
            lane.bucket.borrow(lane.demand.answered((TOPIC, said.partition), said, self.now), self.now + BORROWED_MS)

    def send(self, to: int, said: RateAsk | RateGrant) -> None:
        self.messages += 1
        heapq.heappush(self.under_way, (self.now + self.random.randint(20, 80), next(self.number), to, said))

    def most_above(self) -> float:
        """Return by how much the rate is passed in the worst window, in seconds of it."""
        step = self.rate * STEP_MS / 1_000
        above = [0.0, *accumulate(done - step for done in self.done)]
        worst, lowest = 0.0, 0.0
        for each in above:
            lowest = min(lowest, each)
            worst = max(worst, each - lowest)
        return worst / self.rate

    def carried_out(self, begin_s: float, end_s: float) -> int:
        return sum(self.done[round(begin_s * 1_000 / STEP_MS) : round(end_s * 1_000 / STEP_MS)])


def on_one(rate: float) -> Demanded:
    return lambda partition, _: rate if partition == 0 else 0


def halving(rate: float) -> Demanded:
    return lambda partition, _: rate * 0.5 ** (partition + 1)


def one_and_little_elsewhere(rate: float) -> Demanded:
    return lambda partition, _: rate if partition == 0 else rate / 48


def moving(rate: float) -> Demanded:
    return lambda partition, at: rate if partition == int(at / 7) % 4 else 0


def in_parts(rate: float, demands: list[float]) -> Demanded:
    return lambda partition, _: rate * demands[partition]


def even(rate: float) -> Demanded:
    return lambda _partition, _at: rate / 12


@pytest.mark.parametrize("delays", [False, True], ids=["rejects", "delays"])
@pytest.mark.parametrize("demanded", [on_one, halving, one_and_little_elsewhere, moving, even])
def test_after_some_seconds_the_whole_rate_is_carried_out_whatever_the_keys_are(
    demanded: Callable[[float], Demanded], delays: bool
) -> None:
    topic = Topic(600, 12, delays=delays, saved_s=0.25 if delays else 1.0)
    topic.run(30, demanded(2 * topic.rate))
    assert topic.carried_out(5, 25) == pytest.approx(20 * topic.rate, rel=0.05)
    assert topic.most_above() <= 1 + BORROWED_MS / 1_000


@pytest.mark.parametrize("partitions", [4, 12, 48])
@pytest.mark.parametrize("above", [1.06, 5])
def test_one_key_has_the_whole_rate(partitions: int, above: float) -> None:
    for delays in (False, True):
        topic = Topic(10 * partitions, partitions, delays=delays, saved_s=0.25 if delays else 1.0)
        topic.run(25, on_one(above * topic.rate))
        assert topic.carried_out(4, 24) == pytest.approx(20 * topic.rate, rel=0.05)


@settings(deadline=None, max_examples=tries(60))
@given(
    rate=st.sampled_from([8.0, 60.0, 500.0]),
    partitions=st.integers(1, 8),
    delays=st.booleans(),
    phases=st.lists(
        st.tuples(st.floats(0.1, 2), st.lists(st.sampled_from([0, 0, 0.1, 0.5, 3]), min_size=8, max_size=8)),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 99),
)
def test_no_window_has_more_than_the_rate_and_what_may_be_saved_however_demand_changes(
    rate: float, partitions: int, delays: bool, phases: list[tuple[float, list[float]]], seed: int
) -> None:
    topic = Topic(rate, partitions, delays=delays, saved_s=0.25 if delays else 1.0, seed=seed)
    for seconds, demands in phases:
        topic.run(seconds, in_parts(rate, demands))
    assert topic.most_above() * rate <= max(rate, partitions) + rate * BORROWED_MS / 1_000 + 1


def test_nobody_is_asked_while_nobody_has_to_hold_back() -> None:
    for delays in (False, True):
        topic = Topic(120, 12, delays=delays)
        topic.run(20, lambda *_: 4)
        assert topic.messages == 0


def test_lanes_that_all_hold_back_ask_each_other_seldom() -> None:
    topic = Topic(120, 12, delays=True)
    topic.run(30, even(3 * topic.rate))
    before = topic.messages
    topic.run(10, even(3 * topic.rate))
    assert (topic.messages - before) / 10 <= 2 * 12 * 11 * 1_000 / LAST_PAUSE_MS * 1.5


def test_what_is_lent_is_not_had_twice_and_what_is_needed_is_kept() -> None:
    bucket = TokenBucket(100, AT, saved_s=0.25, spare_s=0.75)
    assert bucket.lend(1_000, 0, AT) == 25
    assert bucket.available(AT) == 0
    assert bucket.lend(1_000, 10, AT + 200) == 10
    assert bucket.available(AT + 200) == 10
    assert bucket.lend(1_000, 1_000, AT + 250) == 0
    assert bucket.lend(40, 1_000, AT + 10_000) == 40, "what is spare is for others only"
    assert bucket.available(AT + 10_000) == 25
    assert bucket.lend(1_000, 1_000, AT + 10_000) == 35


@pytest.mark.parametrize(("rate", "held"), [(0.5, 1), (1, 1), (2, 2), (4, 4), (40, 40)])
def test_a_bucket_holds_a_second_of_its_rate_or_one_token_with_what_is_for_others(rate: float, held: int) -> None:
    bucket = TokenBucket(rate, AT)
    bucket.available(AT + 60_000)
    assert bucket.lend(1_000, 0, AT + 60_000) == held


def test_borrowed_tokens_are_spent_first_and_fill_the_bucket_up_when_they_are_old() -> None:
    bucket = TokenBucket(10, AT, saved_s=1.0, spare_s=0.0)
    bucket.borrow(5, AT + BORROWED_MS)
    assert bucket.available(AT) == 15
    bucket.spend(8)
    assert bucket.available(AT) == 7
    bucket.borrow(30, AT + BORROWED_MS)
    assert bucket.available(AT + BORROWED_MS - 1) == 40
    assert bucket.available(AT + BORROWED_MS) == 10


def test_an_ask_is_answered_once_and_one_without_tokens_is_left_alone_for_longer_each_time() -> None:
    demand, part, now, waits = Demand(), own_part(0, 2), AT, []
    for _ in range(6):
        demand.need(now, 1)
        ((to, ask),) = demand.ask(NAME, 10, part, now).items()
        assert to == (TOPIC, 1)
        assert demand.answered((TOPIC, 1), RateGrant(NAME, 1, ask.number - 1, 5_000), now) == 0
        assert demand.answered((TOPIC, 1), RateGrant(NAME, 1, ask.number, 0), now) == 0
        assert demand.answered((TOPIC, 1), RateGrant(NAME, 1, ask.number, 5_000), now) == 0
        waits.append(demand.ask_at(part, now) - now)
        now = demand.ask_at(part, now)
    assert waits == [1_000, 2_000, 4_000, 4_000, 4_000, 4_000]
    ask = demand.ask(NAME, 10, part, now)[TOPIC, 1]
    assert demand.answered((TOPIC, 1), RateGrant(NAME, 1, ask.number, 1_500), now) == 1.5
    assert demand.ask_at(part, now) == now + ROUND_MS


def test_one_that_does_not_answer_is_asked_again_after_the_longest_pause() -> None:
    demand, part = Demand(), own_part(1, 2)
    demand.need(AT, 1)
    assert demand.ask(NAME, 10, part, AT)
    assert demand.ask_at(part, AT) == AT + LAST_PAUSE_MS
    assert demand.ask(NAME, 10, part, AT + LAST_PAUSE_MS - 1) == {}
    assert demand.ask(NAME, 10, part, AT + LAST_PAUSE_MS)


class Counted(dict[Any, float]):
    """Others, which counts how often somebody looks through them."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        self.looks += 1
        return super().__iter__()


def test_others_are_looked_through_only_when_one_of_them_may_be_asked_or_has_answered() -> None:
    others = Counted(dict.fromkeys([(TOPIC, 1), (TOPIC, 2)], 1 / 3))
    demand, part = Demand(), OwnPart((TOPIC, 0), 1 / 3, others)
    demand.need(AT, 1)
    asks = demand.ask(NAME, 100, part, AT) | demand.ask(NAME, 100, part, AT + ROUND_MS)
    assert list(asks) == [(TOPIC, 1), (TOPIC, 2)]
    assert demand.ask_at(part, AT + ROUND_MS) == AT + LAST_PAUSE_MS
    looks, later = others.looks, AT + LAST_PAUSE_MS - 1
    for now in range(AT + ROUND_MS, later, 10):
        assert demand.ask(NAME, 100, part, now) == {}
        assert demand.ask_at(part, now) == AT + LAST_PAUSE_MS
    assert others.looks == looks
    demand.answered((TOPIC, 2), RateGrant(NAME, 2, asks[TOPIC, 2].number, 1), later)
    assert list(demand.ask(NAME, 100, part, later)) == [(TOPIC, 2)]


def test_what_is_wanted_doubles_while_each_cycle_needs_it_however_long_cycles_take() -> None:
    demand, part, asked = Demand(), own_part(0, 2), []
    for cycle, at in ((1, 0), (2, 700), (3, 1_400), (5, 2_100)):
        demand.need(AT + at, cycle)
        ask = demand.ask(NAME, 1_000, part, AT + at)[TOPIC, 1]
        demand.answered((TOPIC, 1), RateGrant(NAME, 1, ask.number, 1), AT + at)
        asked.append(ask.wanted / THOUSANDTHS)
    first = 1.25 * 51
    assert asked == [first, 8 * first, 1.25 * 1_000, first]


def test_rates_at_rest_are_forgotten() -> None:
    demand = RateDemand()
    for number in range(3 * CROWD):
        now = AT + number * 100
        demand.of(RateName(RateKind.COMMANDS, f"tenant-{number}"), now).use(1, now)
    assert len(demand._all) <= CROWD + REST_MS // 100
    last = demand.of(RateName(RateKind.COMMANDS, f"tenant-{3 * CROWD - 1}"), now)
    assert last.kept(now) == 0.5 * 1_000 / MEMORY_MS


def test_a_clock_that_is_set_back_keeps_nobody_from_asking_or_lending() -> None:
    demand, part, back = Demand(), own_part(0, 2), AT - 600_000
    demand.use(100, AT)
    demand.need(AT, 1)
    assert demand.ask(NAME, 10, part, AT)
    demand.need(back, 2)
    assert demand.ask(NAME, 10, part, back)
    demand.use(1, back)
    assert demand.kept(back + 5 * MEMORY_MS) < 1
