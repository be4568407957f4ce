from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Life

from light_scheduler.engine.spread import offset_of
from light_scheduler.model import LATEST_INSTANT, Cron, FixedRate, Once

FIRINGS = 50_000


@pytest.mark.parametrize(
    ("purpose", "tenant", "id", "planned", "bound", "expected"),
    [
        ("jitter", "acme", "a", MIDNIGHT, 10_000, 8596),
        ("jitter", "acme", "a", MIDNIGHT + 1, 10_000, 2950),
        ("jitter", "acme", "b", MIDNIGHT, 10_000, 3076),
        ("jitter", "other", "a", MIDNIGHT, 10_000, 9774),
        ("window", "acme", "a", MIDNIGHT, 10_000, 854),
        ("backoff", "acme", "ö", MIDNIGHT, 86_400_000, 6441809),
        ("jitter", "acme", "a", MIDNIGHT, 0, 0),
        ("jitter", "acme", "a", MIDNIGHT, 1, 1),
    ],
)
def test_offsets_are_the_same_on_every_node_and_in_every_version(
    purpose: str, tenant: str, id: str, planned: int, bound: int, expected: int
) -> None:
    assert offset_of(purpose, tenant, id, planned, bound) == expected


@given(st.sampled_from(["jitter", "window"]), st.text(max_size=9), st.text(max_size=9), st.integers(0, 10**15))
def test_an_offset_lies_between_nothing_and_its_bound(purpose: str, tenant: str, id: str, planned: int) -> None:
    for bound in (0, 1, 2, 999, 10**9, 315_576_000_000_000):
        assert 0 <= offset_of(purpose, tenant, id, planned, bound) <= bound


def chi_square(counts: Counter[int], cells: int, total: int) -> float:
    expected = total / cells
    return sum((counts[cell] - expected) ** 2 / expected for cell in range(cells))


def highest_likely(cells: int) -> float:
    """Return what chi-square exceeds once in a million uniform samples (Wilson and Hilferty's approximation)."""
    freedom, z = cells - 1, 4.753
    return freedom * (1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("bound", [6, 99, 60_000])
def test_the_offsets_of_one_schedules_firings_are_uniform(bound: int) -> None:
    cells = min(bound + 1, 100)
    offsets = (offset_of("jitter", "acme", "a", MIDNIGHT + n * MINUTE, bound) for n in range(FIRINGS))
    counts = Counter(offset * cells // (bound + 1) for offset in offsets)
    assert chi_square(counts, cells, FIRINGS) < highest_likely(cells)


def test_the_offsets_of_many_schedules_that_are_due_together_are_uniform() -> None:
    counts = Counter(offset_of("jitter", "acme", f"job-{n}", MIDNIGHT, 59_999) // 600 for n in range(FIRINGS))
    assert chi_square(counts, 100, FIRINGS) < highest_likely(100)


def test_the_offset_of_a_firing_says_nothing_of_the_next_one() -> None:
    cells = Counter(
        offset_of("jitter", "acme", "a", MIDNIGHT + n * MINUTE, 9) * 10
        + offset_of("jitter", "acme", "a", MIDNIGHT + (n + 1) * MINUTE, 9)
        for n in range(FIRINGS)
    )
    assert chi_square(cells, 100, FIRINGS) < highest_likely(100)


@pytest.mark.parametrize("trigger", [FixedRate(MINUTE), Cron("* * * * *")])
@pytest.mark.parametrize("window", [0, 20 * SECOND])
def test_with_jitter_no_firing_is_early_nor_later_than_it_and_the_plan_does_not_move(
    trigger: FixedRate | Cron, window: int
) -> None:
    life = Life()
    life.schedule(trigger, jitter=20 * SECOND, window=window)
    life.run(MIDNIGHT + 10 * HOUR)
    assert len(life.delivered) in (599, 600)
    for step, firing in enumerate(life.delivered, 1):
        planned = MIDNIGHT + step * MINUTE
        assert planned <= firing.due <= planned + 20 * SECOND
        assert firing.due <= firing.at <= firing.due + window
    assert len({firing.due % MINUTE for firing in life.delivered}) > 500


def test_jitter_longer_than_the_interval_keeps_order_and_loses_nothing() -> None:
    life = Life()
    life.schedule(FixedRate(SECOND), jitter=MINUTE, max_firings=500)
    life.run(MIDNIGHT + HOUR)
    assert len(life.dues) == 500
    assert life.dues == sorted(set(life.dues))
    assert all(0 <= due - (MIDNIGHT + n * SECOND) <= MINUTE for n, due in enumerate(life.dues, 1))
    assert life.events.count("skipped") == 0


def test_jitter_does_not_reach_past_the_end() -> None:
    for number in range(50):
        life = Life(id=f"job-{number}")
        life.schedule(FixedRate(MINUTE), jitter=HOUR, end=MIDNIGHT + MINUTE + 5)
        life.run(MIDNIGHT + 2 * HOUR)
        assert len(life.dues) == 1
        assert MIDNIGHT + MINUTE <= life.dues[0] <= MIDNIGHT + MINUTE + 5


@pytest.mark.parametrize("timing", [Once(LATEST_INSTANT), FixedRate(HOUR)])
@pytest.mark.parametrize("spread", [{"jitter": 1}, {"jitter": HOUR}, {"window": 1}, {"jitter": SECOND, "window": HOUR}])
def test_nothing_moves_a_firing_past_the_year_9999(timing: Once | FixedRate, spread: dict[str, int]) -> None:
    start = {} if isinstance(timing, Once) else {"start": LATEST_INSTANT - SECOND}
    for number in range(20):
        life = Life(id=f"job-{number}")
        life.schedule(timing, **start, **spread)
        life.run(LATEST_INSTANT)
        (firing,) = life.delivered
        assert LATEST_INSTANT - SECOND <= firing.due <= firing.at <= LATEST_INSTANT


def test_a_single_firing_may_have_jitter_and_a_window() -> None:
    ats = set()
    for number in range(200):
        life = Life(id=f"job-{number}")
        life.schedule(Once(MIDNIGHT + HOUR), jitter=MINUTE, window=MINUTE)
        life.run(MIDNIGHT + 2 * HOUR)
        (firing,) = life.delivered
        assert MIDNIGHT + HOUR <= firing.due <= firing.at <= MIDNIGHT + HOUR + 2 * MINUTE
        ats.add(firing.at)
    assert len(ats) > 150


def test_a_window_ends_with_the_time_to_live() -> None:
    for number in range(100):
        life = Life(id=f"job-{number}")
        life.schedule(Once(MIDNIGHT + HOUR), window=HOUR, ttl=SECOND)
        life.run(MIDNIGHT + 3 * HOUR)
        assert life.events == ["scheduled", "fired"]
