"""Why a series has ended."""

from __future__ import annotations

from typing import Any

import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Life

from light_scheduler.engine import FiringRules
from light_scheduler.model import LATEST_INSTANT, Backoff, Cron, EventType, FixedDelay, FixedRate, Once, Series

M = MIDNIGHT
HAD_TWO = "it has had its maximum number of firings, 2"
NONE_LEFT = "no firing is left before its end"
PASSED = "its new times have been delivered"


@pytest.mark.parametrize(
    ("series", "bounds", "why"),
    [
        (FixedRate(HOUR), {"max_firings": 2}, HAD_TWO),
        (Cron("0 * * * *"), {"max_firings": 2}, HAD_TWO),
        (Backoff((HOUR,) * 5), {"max_firings": 2}, HAD_TWO),
        (FixedRate(HOUR), {"max_firings": 2, "end": M + 2 * HOUR}, HAD_TWO),
        (FixedRate(HOUR), {"max_firings": 3, "end": M + 2 * HOUR}, NONE_LEFT),
        (Cron("0 * * * *"), {"end": M + 2 * HOUR}, NONE_LEFT),
        (Backoff((HOUR,) * 5), {"end": M + 2 * HOUR}, NONE_LEFT),
        (Backoff((HOUR,) * 2), {}, "it has had its last attempt, number 2"),
        (Cron("0 0 1,2 1 1 ? 2026", "quartz"), {}, "its cron expression has no later time"),
        (FixedRate(HOUR), {"start": LATEST_INSTANT - HOUR - 1}, "its next time is after the year 9999"),
    ],
)
@pytest.mark.parametrize("is_refused", [False, True])
def test_a_series_ends_with_its_last_firing_for_a_reason(
    series: Series, bounds: dict[str, Any], why: str, is_refused: bool
) -> None:
    life = Life(FiringRules(retries=0))
    if is_refused:
        life.refuse = lambda due, attempt: "too large"
    life.schedule(series, **bounds)
    life.run(LATEST_INSTANT)
    assert (life.events.count("fired") + life.events.count("dead_lettered"), life.finished) == (2, why)


def test_a_series_of_which_the_rest_is_left_out_ends_for_a_reason() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), misfire="skip", end=M + 3 * HOUR, max_firings=3)
    life.tick(M + 30 * HOUR)
    assert (life.events, life.finished) == (["scheduled", "skipped", "finished"], NONE_LEFT)


def test_a_firing_that_was_asked_for_counts_once_for_the_maximum() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), max_firings=3, end=M + HOUR)
    life.control("trigger", M + HOUR)
    life.tick(M + HOUR + 1)
    assert (len(life.delivered), life.finished) == (2, NONE_LEFT)


def test_a_firing_that_waited_for_the_one_before_it_counts_once_for_the_maximum() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), max_firings=3, end=M + 2 * HOUR, timeout=HOUR, overlap="queue", max_attempts=2)
    life.run(M + 2 * HOUR - 1)
    life.extend(M + HOUR, M + 2 * HOUR - 1)
    life.run(M + 2 * HOUR)
    for due in (M + HOUR, M + 2 * HOUR):
        life.complete(due, M + 2 * HOUR + SECOND)
        life.run(M + 2 * HOUR + SECOND)
    assert (life.dues, life.finished) == ([M + HOUR, M + 2 * HOUR], NONE_LEFT)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_series_ends_with_the_completion_of_the_last_firing_that_waits_whichever_that_is(
    order: tuple[int, int],
) -> None:
    life = Life()
    life.schedule(FixedRate(MINUTE), max_firings=2, timeout=HOUR)
    life.run(M + 2 * MINUTE)
    for number in order:
        life.complete(M + number * MINUTE, M + 3 * MINUTE)
    assert life.finished == HAD_TWO


def test_a_fixed_delay_ends_with_the_completion_of_its_last_run() -> None:
    life = Life()
    life.schedule(FixedDelay(MINUTE), end=M + MINUTE)
    life.run(M + MINUTE)
    life.complete(M + MINUTE, M + MINUTE)
    assert life.finished == NONE_LEFT


def test_a_backoff_series_ends_with_its_completion() -> None:
    life = Life()
    life.schedule(Backoff((MINUTE, MINUTE)), end=M + HOUR)
    life.run(M + MINUTE)
    life.complete(M + MINUTE, M + MINUTE)
    assert (life.entry, life.finished) == (None, "it was completed")


@pytest.mark.parametrize(("new", "bounds"), [(Once(M + HOUR), {}), (Cron("0 * * * *"), {"end": M + HOUR})])
def test_a_series_whose_new_times_have_been_delivered_ends_for_that_reason(
    new: Once | Cron, bounds: dict[str, int]
) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR))
    life.run(M + HOUR)
    decision = life.reschedule(new, M + HOUR + 1, recorded_at=M + HOUR - 1, **bounds)
    assert (life.entry, life.finished, decision.reason) == (None, PASSED, f"rescheduled: {PASSED}")


def test_a_replacement_whose_one_time_to_be_made_up_for_is_past_its_end_ends_for_a_reason() -> None:
    life = Life()
    life.schedule(Cron("*/5 * * * *"))
    life.run(M + 5 * MINUTE)
    decision = life.schedule(Cron("2 0 * * *"), M + 6 * MINUTE, recorded_at=M + MINUTE, end=M + 4 * MINUTE)
    why = "all its times are before the last firing of the schedule that it replaces"
    assert (life.entry, life.finished, decision.reason) == (None, why, why)


def test_a_replacement_that_ends_at_once_says_which_firings_it_gives_up_and_why_it_ends() -> None:
    life = Life()
    life.schedule(Cron("*/5 * * * *"), timeout=HOUR)
    life.run(M + 5 * MINUTE)
    decision = life.schedule(Cron("2 0 * * *"), M + 6 * MINUTE, recorded_at=M + MINUTE, end=M + 4 * MINUTE)
    given_up = f"replaced: gives up what was delivered and not completed, which was due at {M + 5 * MINUTE}"
    why = "all its times are before the last firing of the schedule that it replaces"
    assert (life.entry, life.finished, decision.reason) == (None, why, f"{given_up}; {why}")


def test_a_single_firing_is_never_finished() -> None:
    life = Life()
    life.schedule(Once(M + HOUR))
    life.run(M + HOUR)
    assert (life.events, life.finished) == (["scheduled", EventType.FIRED.value], None)
