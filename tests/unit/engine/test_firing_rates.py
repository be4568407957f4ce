"""Rate caps: never more than the rate allows, never less than it promises, whatever the clock does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.firing_rates import FiringRates
from light_scheduler.engine.token_bucket import NOTHING_MS, SAVED_S, TokenBucket
from light_scheduler.model import Entry, Once, Progress, Schedule, Shares, Target
from light_scheduler.model.rate_lending import ALL, RatePart

AT = 1_767_225_600_000


def firing(tenant: str, due: int = AT) -> Entry:
    return Entry(Schedule(tenant, "id", 1, Once(due), Target("t"), None, [], 0, 0, AT), Progress(due, 0))


@pytest.mark.parametrize(
    ("rate", "spent", "after_ms", "available"),
    [
        pytest.param(100, 0, 0, 25, id="full at first"),
        pytest.param(100, 25, 0, 0, id="spent"),
        pytest.param(100, 25, 9, 0, id="less than one token"),
        pytest.param(100, 25, 10, 1, id="one token"),
        pytest.param(100, 25, 100, 10, id="a gulp"),
        pytest.param(100, 25, 10_000, 25, id="never more than it holds"),
        pytest.param(0.5, 0, 0, 1, id="a slow one holds one"),
        pytest.param(0.5, 1, 1_999, 0, id="a slow one, too soon"),
        pytest.param(0.5, 1, 2_000, 1, id="a slow one, in time"),
        pytest.param(100, 25, -5_000, 0, id="a clock set back fills nothing"),
        pytest.param(100, 20, -5_000, 5, id="and costs nothing"),
    ],
)
def test_a_bucket(rate: float, spent: int, after_ms: int, available: int) -> None:
    bucket = TokenBucket(rate, AT)
    bucket.spend(spent)
    assert bucket.available(AT + after_ms) == available


def test_after_a_clock_was_set_back_a_bucket_fills_at_its_rate() -> None:
    bucket = TokenBucket(100, AT)
    bucket.spend(25)
    bucket.available(AT - 3_600_000)
    assert bucket.available(AT - 3_600_000 + 50) == 5


@pytest.mark.parametrize(("rate", "wait_ms"), [(100, 100), (1_000, 100), (4, 250), (0.5, 2_000), (3, 334)])
def test_an_empty_bucket_is_ready_when_a_gulp_has_come_together(rate: float, wait_ms: int) -> None:
    bucket = TokenBucket(rate, AT)
    bucket.spend(bucket.available(AT))
    assert bucket.ready_at() == AT + wait_ms
    assert bucket.available(bucket.ready_at()) == max(1, int(rate * 0.1))


waits = st.lists(st.integers(0, 400) | st.integers(0, 20_000), min_size=1, max_size=60)


@given(rate=st.floats(0.01, 5_000), waits=waits, wants=st.integers(1, 10_000))
def test_never_more_than_the_rate_and_what_was_saved(rate: float, waits: list[int], wants: int) -> None:
    bucket, now, spent = TokenBucket(rate, AT), AT, 0
    for wait in waits:
        now += wait
        count = min(wants, bucket.available(now))
        bucket.spend(count)
        spent += count
        assert spent <= rate * (now - AT) / 1_000 + max(1.0, rate * SAVED_S) + 1e-6


@given(rate=st.floats(0.05, 5_000))
def test_who_comes_when_the_bucket_is_ready_gets_the_whole_rate(rate: float) -> None:
    bucket, now, spent = TokenBucket(rate, AT), AT, 0
    while now < AT + 100_000:
        count = bucket.available(now)
        bucket.spend(count)
        spent += count
        now = max(now + 1, bucket.ready_at())
    assert spent >= rate * (now - AT) / 1_000 - max(1.0, 0.15 * rate) - 1


class Lane:
    """What a lane does with rate caps, with as much due as one likes."""

    def __init__(self, shares: Shares, lanes: int = 1) -> None:
        self.rates = FiringRates(shares)
        self.rates.earn(RatePart(1 / lanes), AT)

    def cycle(self, now: int, **due: int) -> dict[str, int]:
        total = self.rates.total(now)
        fired: dict[str, int] = {}
        for tenant, count in due.items():
            allowed = self.rates.allowed(tenant, now)
            fired[tenant] = min(x for x in (count, total, allowed) if x is not None)
            total = None if total is None else total - fired[tenant]
        self.rates.charge([firing(tenant) for tenant, count in fired.items() for _ in range(count)], now)
        return fired


@pytest.mark.parametrize(
    ("shares", "lanes", "fired"),
    [
        pytest.param(Shares(), 1, {"a": 900, "b": 900}, id="no caps"),
        pytest.param(Shares(rates={"a": 400}), 1, {"a": 100, "b": 900}, id="one tenant"),
        pytest.param(Shares(rates={"*": 400}), 1, {"a": 100, "b": 100}, id="each tenant"),
        pytest.param(Shares(rates={"*": 400, "b": None}), 1, {"a": 100, "b": 900}, id="each but one"),
        pytest.param(Shares(rates={"*": 400, "b": 40}), 1, {"a": 100, "b": 10}, id="the name counts, not the others"),
        pytest.param(Shares(rate=400), 1, {"a": 100, "b": 0}, id="all together"),
        pytest.param(Shares(rate=400, rates={"a": 200}), 1, {"a": 50, "b": 50}, id="all together, and one"),
        pytest.param(Shares(rate=400, rates={"a": 200}), 5, {"a": 10, "b": 10}, id="shared among lanes"),
    ],
)
def test_what_caps_leave(shares: Shares, lanes: int, fired: dict[str, int]) -> None:
    lane = Lane(shares, lanes)
    assert lane.cycle(AT, a=900, b=900) == fired
    again = {tenant: count if count == 900 else 0 for tenant, count in fired.items()}
    assert lane.cycle(AT, a=900, b=900) == again


def test_when_partitions_are_added_a_lane_earns_less_and_what_it_has_saved_stays_up_to_its_new_part() -> None:
    lane = Lane(Shares(rate=800, rates={"a": 400}), 1)
    assert lane.cycle(AT, a=90) == {"a": 90}
    lane.rates.earn(RatePart(0.25), AT)
    assert lane.cycle(AT, a=900) == {"a": 10}
    assert lane.cycle(AT + 100, a=900) == {"a": 10}
    assert lane.cycle(AT + 9_000, a=900, b=900) == {"a": 25, "b": 25}


def test_a_lane_that_is_new_begins_with_nothing_and_earns_more_step_by_step() -> None:
    lane = Lane(Shares(rates={"*": 400}), 1)
    lane.rates = FiringRates(Shares(rates={"*": 400}))
    lane.rates.earn(RatePart(0.0, is_new=True), AT)
    assert lane.cycle(AT + 5_000, a=900) == {"a": 0}
    assert lane.rates.hold(["a"], AT + 5_000) == AT + 5_000 + NOTHING_MS
    lane.rates.earn(RatePart(0.125, is_new=True), AT + 5_000)
    assert lane.cycle(AT + 5_100, a=900, b=900) == {"a": 5, "b": 5}
    lane.rates.earn(RatePart(0.25), AT + 5_100)
    assert lane.cycle(AT + 5_200, a=900, b=900, c=900) == {"a": 10, "b": 10, "c": 25}


def test_who_is_held_goes_on_when_the_first_bucket_is_ready() -> None:
    lane = Lane(Shares(rate=40, rates={"a": 10, "b": 2}))
    lane.cycle(AT, a=900, b=900)
    assert lane.rates.hold([], AT) is None
    assert lane.rates.hold(["a"], AT) == AT + 50  # half a token of 2.5 is left
    assert lane.rates.hold(["b"], AT) == AT + 500
    assert lane.rates.hold(["b", "a"], AT) == AT + 50


@pytest.mark.parametrize("held", [["a"], [ALL]])
def test_firings_count_as_throttled_if_they_were_due_while_held(held: list[str]) -> None:
    rates = FiringRates(Shares(rate=100, rates={"*": 100}))
    assert rates.charge([firing("a"), firing("b")], AT) == 0
    rates.hold(held, AT + 10)
    waited = [firing("a", AT), firing("a", AT + 10)]
    assert rates.charge([*waited, firing("a", AT + 11)], AT + 20) == 2
    assert rates.charge([firing("b", AT)], AT + 20) == (held == [ALL])


def test_without_caps_nothing_is_counted() -> None:
    rates = FiringRates(Shares(weights={"a": 3}))
    assert (rates.total(AT), rates.allowed("a", AT), rates.charge([firing("a")], AT)) == (None, None, 0)


def test_buckets_of_tenants_that_pause_are_given_up() -> None:
    lane: Any = Lane(Shares(rates={"*": 10}))
    for number in range(5_000):
        lane.cycle(AT + 1_000 * number, **{f"tenant-{number}": 900})
    assert len(lane.rates._buckets) < 1_100
    assert lane.cycle(AT + 5_000_000, **{"tenant-4999": 900}) == {"tenant-4999": 2}
    assert lane.cycle(AT + 5_000_000, **{"tenant-4999": 900}) == {"tenant-4999": 0}


def test_new_caps_hold_at_once_and_buckets_whose_rate_stays_are_not_filled_up_again() -> None:
    rates = FiringRates(Shares(rates={"a": 8, "b": 8}))
    assert rates.allowed("a", AT) == rates.allowed("b", AT) == 2
    for tenant in "ab":
        bucket = rates._bucket(tenant, AT)
        assert bucket is not None
        bucket.spend(2)
    rates.change(Shares(rates={"a": 8, "b": 80, "c": 4}))
    assert [rates.allowed(tenant, AT) for tenant in "abc"] == [0, 20, 1]
    rates.change(Shares())
    assert rates.allowed("a", AT) is None
    assert not rates.has_caps
