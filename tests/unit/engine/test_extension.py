"""Extending a firing: its consumer is still at work, and it is not delivered again meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, Life

from light_scheduler.model import Backoff, Cron, EventType, FixedDelay, FixedRate, Once, Outcome, Timing

M = MIDNIGHT
DUE = M + HOUR
KINDS: list[Timing] = [Once(DUE), FixedRate(HOUR), Cron("0 * * * *"), FixedDelay(HOUR)]


def delivered(timing: Timing, attempt: int = 1, **fields: Any) -> Life:
    """Return a schedule whose first firing was delivered some times, a minute apart, and is awaited."""
    life = Life()
    life.schedule(timing, **{"timeout": MINUTE, "max_attempts": 5, "max_firings": 1, **fields})
    for again in range(attempt):
        life.tick(DUE + again * MINUTE)
    assert [firing.attempt for firing in life.delivered] == list(range(1, attempt + 1))
    return life


@pytest.mark.parametrize("timing", KINDS)
def test_a_firing_that_is_extended_comes_again_a_time_out_later(timing: Timing) -> None:
    life = delivered(timing)
    for beat in range(1, 10):
        decision = life.extend(DUE, DUE + beat * 50_000)
        assert (decision.outcome, decision.event) == (Outcome.UPDATED, EventType.UPDATED)
    life.run(DUE + 9 * 50_000 + MINUTE - 1)
    assert len(life.delivered) == 1
    life.run(DUE + 9 * 50_000 + MINUTE)
    assert (life.delivered[1].at, life.delivered[1].attempt) == (DUE + 9 * 50_000 + MINUTE, 2)


@pytest.mark.parametrize(
    ("timeout", "until"), [(None, DUE + MINUTE + 1), (10 * MINUTE, DUE + 10 * MINUTE + 1), (1, DUE + MINUTE)]
)
def test_a_time_out_of_its_own_counts_and_none_ends_sooner_than_before(timeout: int | None, until: int) -> None:
    life = delivered(Once(DUE))
    life.extend(DUE, DUE + 1, timeout=timeout)
    life.run(until - 1)
    assert len(life.delivered) == 1
    life.run(until)
    assert len(life.delivered) == 2


def test_a_fixed_delay_without_a_time_out_of_its_own_is_extended_by_its_default() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.tick(DUE)
    life.extend(DUE, DUE + 4 * MINUTE)
    life.run(DUE + 9 * MINUTE - 1)
    assert life.dead == []
    life.run(DUE + 9 * MINUTE)
    assert life.dead == [("unacknowledged", DUE)]


@pytest.mark.parametrize("attempt", [1, 2, 4])
def test_another_attempt_than_the_latest_is_a_conflict_and_changes_nothing(attempt: int) -> None:
    life = delivered(Once(DUE), attempt=3)
    decision = life.extend(DUE, DUE + 2 * MINUTE + 1, attempt)
    assert (decision.outcome, decision.event) == (Outcome.CONFLICT, None)
    assert decision.reason == f"attempt {attempt} was extended; the latest one is 3"
    life.run(DUE + 3 * MINUTE)
    assert len(life.delivered) == 4


@pytest.mark.parametrize("late_ms", [0, 1, HOUR])
def test_what_was_recorded_after_the_time_out_is_a_conflict(late_ms: int) -> None:
    life = delivered(Once(DUE))
    decision = life.extend(DUE, DUE + MINUTE + late_ms)
    assert (decision.outcome, decision.event) == (Outcome.CONFLICT, None)
    assert "was over" in (decision.reason or "")


@pytest.mark.parametrize("recorded_at", [DUE + MINUTE - 1, DUE, 1])
def test_what_was_recorded_in_time_counts_though_it_is_read_late(recorded_at: int) -> None:
    life = delivered(Once(DUE))
    read_at = DUE + 5 * MINUTE  # no worker ran
    assert life.extend(DUE, read_at, recorded_at=recorded_at).outcome is Outcome.UPDATED
    life.run(read_at + MINUTE - 1)
    assert len(life.delivered) == 1


def test_a_clock_that_is_ahead_makes_nothing_late() -> None:
    life = delivered(Once(DUE))
    assert life.extend(DUE, DUE + 1, recorded_at=DUE + HOUR).outcome is Outcome.UPDATED


def test_after_a_failure_was_reported_nothing_is_extended() -> None:
    life = delivered(Once(DUE))
    life.complete(DUE, DUE + 10, succeeded=False)
    assert life.extend(DUE, DUE + 11).outcome is Outcome.CONFLICT
    life.tick(DUE + 11)
    assert [firing.attempt for firing in life.delivered] == [1, 2]


@pytest.mark.parametrize("due", [DUE + 1, DUE])
def test_what_does_not_wait_is_not_found(due: int) -> None:
    life = delivered(FixedRate(HOUR), max_firings=5)
    if due == DUE:
        life.complete(DUE, DUE + 1)
    assert life.extend(due, DUE + 2).outcome is Outcome.NOT_FOUND


def test_a_backoff_series_has_times_of_its_own() -> None:
    life = Life()
    life.schedule(Backoff((MINUTE, MINUTE)))
    life.tick(M + MINUTE)
    decision = life.extend(M + MINUTE, M + MINUTE + 1)
    assert (decision.outcome, decision.event) == (Outcome.CONFLICT, None)
    assert "their own times" in (decision.reason or "")


@pytest.mark.parametrize("timeout", [MINUTE, 5_000])
def test_what_a_target_refused_is_not_in_the_way_of_an_extended_firing(timeout: int) -> None:
    life = delivered(Once(DUE))
    life.refuse = lambda due, attempt: "no such topic"
    life.tick(DUE + MINUTE)
    life.extend(DUE, DUE + MINUTE + 1, recorded_at=DUE + MINUTE - 1, timeout=timeout)
    life.refuse = lambda due, attempt: None
    life.run(DUE + 2 * MINUTE + 1)
    assert [firing.at for firing in life.delivered][:2] == [DUE, DUE + MINUTE + 1 + timeout]
    assert life.dead == []


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, 2 * MINUTE), st.sampled_from([None, 1, 5 * MINUTE])), max_size=30),
)
def test_a_firing_comes_again_exactly_when_its_latest_extension_is_over(
    timing: Timing, beats: list[tuple[int, int | None]]
) -> None:
    """A model of one number: until when the consumer has time."""
    life, now, until, attempt = delivered(timing, max_attempts=1_000), DUE, DUE + MINUTE, 1
    for pause, timeout in beats:
        now += pause
        while until <= now:
            attempt, until = attempt + 1, until + MINUTE
        life.run(now)
        assert life.extend(DUE, now, attempt, timeout=timeout).outcome is Outcome.UPDATED
        until = max(until, now + (timeout or MINUTE))
        assert life.delivered[-1].attempt == attempt
    life.run(until - 1)
    assert life.delivered[-1].attempt == attempt
    life.run(until)
    assert (life.delivered[-1].at, life.delivered[-1].attempt) == (until, attempt + 1)
