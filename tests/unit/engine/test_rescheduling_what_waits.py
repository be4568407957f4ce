"""Firings that wait for their completion while their schedule is rescheduled."""

from __future__ import annotations

import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Life

from light_scheduler.engine.completion import DEFAULT_TIMEOUT_MS
from light_scheduler.model import Backoff, Cron, FixedDelay, FixedRate, Once, Outcome, Timing

M = MIDNIGHT
FIRED = M + HOUR
OTHERS: list[Timing] = [FixedRate(24 * HOUR), Cron("0 0 * * *"), Once(M + 24 * HOUR), Once(FIRED + 2 * MINUTE)]


def running() -> Life:
    """Return a fixed delay without a time-out of its own whose first run is on."""
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.run(FIRED)
    return life


@pytest.mark.parametrize("new", OTHERS)
@pytest.mark.parametrize("succeeded", [True, False])
def test_the_run_of_a_fixed_delay_that_is_on_is_completed_though_it_has_become_another_series(
    new: Timing, succeeded: bool
) -> None:
    life = running()
    assert life.reschedule(new, FIRED + MINUTE).reason == "rescheduled"
    life.run(FIRED + 3 * MINUTE)
    assert life.complete(FIRED, FIRED + 4 * MINUTE, succeeded=succeeded) is Outcome.COMPLETED
    life.run(FIRED + 24 * HOUR)
    assert life.dead == []


@pytest.mark.parametrize("new", OTHERS)
def test_the_run_of_a_fixed_delay_that_nobody_completes_becomes_a_dead_letter_though_it_has_become_another_series(
    new: Timing,
) -> None:
    life = running()
    life.reschedule(new, FIRED + MINUTE)
    life.run(FIRED + DEFAULT_TIMEOUT_MS - 1)
    assert life.dead == []
    life.run(FIRED + DEFAULT_TIMEOUT_MS)
    assert life.dead == [("unacknowledged", FIRED)]
    life.run(M + 26 * HOUR)
    assert [firing.attempt for firing in life.delivered] == [1, 1]


def test_the_run_of_a_fixed_delay_that_is_on_is_extended_though_it_has_become_another_series() -> None:
    life = running()
    life.reschedule(FixedRate(24 * HOUR), FIRED + MINUTE)
    assert life.extend(FIRED, FIRED + 2 * MINUTE).outcome is Outcome.UPDATED
    life.run(FIRED + 2 * MINUTE + DEFAULT_TIMEOUT_MS - 1)
    assert life.dead == []
    life.run(FIRED + 2 * MINUTE + DEFAULT_TIMEOUT_MS)
    assert life.dead == [("unacknowledged", FIRED)]


@pytest.mark.parametrize("new", [Once(M + 4 * HOUR), FixedRate(4 * HOUR)])
def test_what_a_series_delivered_keeps_waiting_however_often_its_single_firing_to_come_is_moved(new: Timing) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(FIRED)
    life.reschedule(Once(M + 9 * HOUR), FIRED + 1)
    life.reschedule(new, FIRED + 2)
    life.run(M + 3 * HOUR)
    assert [(firing.due, firing.attempt) for firing in life.delivered] == [(FIRED, 1), (FIRED, 2)]
    assert life.dead == [("unacknowledged", FIRED)]


def test_only_its_own_delivery_of_a_single_firing_is_forgotten_when_it_gets_a_new_time() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=5 * HOUR)
    life.tick(FIRED)
    life.reschedule(Once(M + 2 * HOUR), FIRED + 1)
    life.run(M + 2 * HOUR)
    life.reschedule(Once(M + 3 * HOUR), M + 2 * HOUR + 1)
    assert life.complete(M + 2 * HOUR, M + 2 * HOUR + 2) is Outcome.NOT_FOUND
    assert life.complete(FIRED, M + 2 * HOUR + 2) is Outcome.COMPLETED
    life.run(M + 3 * HOUR)
    assert life.dues == [FIRED, M + 2 * HOUR, M + 3 * HOUR]


def test_a_series_that_becomes_a_backoff_says_which_firings_it_gives_up() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=10 * HOUR)
    life.run(M + 2 * HOUR)
    decision = life.reschedule(Backoff((HOUR, HOUR)), M + 2 * HOUR + MINUTE)
    assert decision.reason == (
        f"rescheduled: gives up what was delivered and not completed, which was due at {FIRED}, {M + 2 * HOUR}"
    )
    assert life.complete(FIRED, M + 2 * HOUR + 2 * MINUTE) is Outcome.NOT_FOUND


@pytest.mark.parametrize(("new", "dues"), [(M + 90 * MINUTE, [FIRED, M + 90 * MINUTE]), (FIRED, [FIRED])])
def test_a_single_firing_that_was_delivered_late_is_delivered_again_if_its_new_time_is_after_its_old_one(
    new: int, dues: list[int]
) -> None:
    life = Life()
    life.schedule(Once(FIRED), timeout=HOUR)
    life.tick(M + 2 * HOUR)
    life.reschedule(Once(new), M + 2 * HOUR + 1)
    life.run(M + 2 * HOUR + MINUTE)
    assert life.dues == dues


@pytest.mark.parametrize("old", [Once(FIRED), Backoff((HOUR, HOUR))])
@pytest.mark.parametrize("new", [Once(M + 4 * HOUR), Backoff((SECOND,))])
def test_what_is_delivered_again_at_its_new_time_is_not_given_up(old: Timing, new: Timing) -> None:
    life = Life()
    life.schedule(old, timeout=HOUR)
    life.tick(FIRED)
    assert life.reschedule(new, FIRED + MINUTE).reason == "rescheduled"
