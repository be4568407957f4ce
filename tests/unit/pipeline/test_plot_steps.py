"""Steps of a plot: no more than it has room for, and none that make a pattern of their own."""

from __future__ import annotations

import pytest

from light_scheduler.pipeline.plot_steps import MOST_STEPS, Steps

HOUR, DAY, WEEK = 60, 1_440, 10_080
MONDAY = 20_451 * DAY
"""2025-12-29, as a minute of the epoch."""


@pytest.mark.parametrize(
    ("minutes", "narrower", "width", "words"),
    [
        (1, 0, 1, "a minute"),
        (480, 0, 1, "a minute"),
        (481, 1, 2, "2 minutes"),
        (DAY, 2, 3, "3 minutes"),
        (2 * DAY, 5, 6, "6 minutes"),
        (WEEK, 20, 30, "30 minutes"),
        (30 * DAY, 60, 120, "2 hours"),
        (366 * DAY, 720, DAY, "a day"),
        (20 * 365 * DAY, 2 * WEEK, 3 * WEEK, "3 weeks"),
    ],
)
def test_steps_are_the_narrowest_parts_of_hours_days_or_weeks_that_there_is_room_for(
    minutes: int, narrower: int, width: int, words: str
) -> None:
    steps = Steps.of(MONDAY, MONDAY + minutes)
    assert (steps.width, steps.words()) == (width, words)
    assert MONDAY - width < steps.first <= MONDAY
    assert steps.first == MONDAY or width > WEEK
    assert steps.number <= MOST_STEPS
    assert not narrower or minutes > MOST_STEPS * narrower, "there is no room for narrower ones"


@pytest.mark.parametrize("minutes", [1, 7, 479, 480, 481, 500, DAY, 3 * DAY, WEEK, 31 * DAY, 400 * DAY, 4_000 * DAY])
@pytest.mark.parametrize("begin", [MONDAY, MONDAY + 1, MONDAY + 7 * HOUR + 13])
def test_each_minute_of_the_range_is_in_one_step(begin: int, minutes: int) -> None:
    end = begin + minutes
    steps = Steps.of(begin, end)
    assert steps.number <= MOST_STEPS
    assert steps.step(begin) == 0
    assert steps.step(end - 1) == steps.number - 1
    of_steps = steps.minutes(begin, end)
    assert len(of_steps) == steps.number
    assert sum(of_steps) == minutes
    assert all(0 < each <= steps.width for each in of_steps)


@pytest.mark.parametrize(("minutes", "period"), [(WEEK, HOUR), (40 * DAY, DAY), (400 * DAY, DAY), (4_000 * DAY, WEEK)])
def test_what_is_the_same_in_each_period_is_the_same_in_each_step_or_in_each_period_of_steps(
    minutes: int, period: int
) -> None:
    begin = MONDAY + 5 * HOUR + 17
    steps = Steps.of(begin, begin + minutes)
    counted = [0] * steps.number
    for peak in range(MONDAY + WEEK, begin + minutes, period):
        counted[steps.step(peak)] += 1
    whole = counted[counted.index(max(counted)) : -1]
    length = max(1, period // steps.width)
    assert all(one == other for one, other in zip(whole, whole[length:], strict=False))


def test_a_week_begins_on_monday() -> None:
    assert Steps.of(MONDAY + 3 * DAY, MONDAY + 3 * DAY + 1_000 * DAY) == Steps(MONDAY, WEEK, 144)


def test_a_range_without_minutes_is_one_step() -> None:
    assert Steps.of(MONDAY, MONDAY) == Steps(MONDAY, 1, 1)
