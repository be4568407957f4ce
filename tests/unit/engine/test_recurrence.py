from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Life

from light_scheduler.engine import FiringRules, take_turn
from light_scheduler.engine.cron import CompiledCron
from light_scheduler.engine.recurrence import (
    backoff_interval,
    first_planned,
    is_last_attempt,
    next_of,
    next_planned,
)
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    LATEST_INSTANT,
    NEVER,
    NO_BOUNDS,
    Backoff,
    Bounds,
    Cron,
    Entry,
    FixedDelay,
    FixedRate,
    Once,
    Progress,
    Schedule,
    Series,
    Target,
    Trigger,
)

TEN_MILLION = 10_000_000


def schedule(trigger: Trigger, id: str = "a", **bounds: Any) -> Schedule:
    asked = Bounds(**bounds) if bounds else None
    return Schedule("acme", id, 1, trigger, Target("t"), b"x", [], 0, 7, MIDNIGHT, bounds=asked)


def first(trigger: Series, **bounds: Any) -> int | None:
    return first_planned(trigger, Bounds(**bounds), MIDNIGHT, "acme", "a")


def times(trigger: Trigger, after: int, count: int, **bounds: Any) -> list[int]:
    found = []
    for attempt in range(1, count + 1):
        following = next_planned(schedule(trigger, **bounds), after, attempt)
        if following is None:
            break
        found.append(after := following)
    return found


# -- fixed rate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1, 3, 7, 999, 1_000, 60_000, 3_600_000])
def test_ten_million_iterations_of_a_fixed_rate_end_where_multiplication_says(interval: int) -> None:
    series = schedule(FixedRate(interval, MIDNIGHT + 1))
    for step in (1, 2, 1_000, TEN_MILLION - 1, TEN_MILLION):
        planned = MIDNIGHT + 1 + step * interval
        assert next_planned(series, planned - interval, attempt=1) == planned
        # Woken late by any part of an interval, the next one is where it was.
        assert next_planned(series, planned - 1, attempt=1) == planned


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    """How many of ten million; all of them: `--iterations 10000000 --timeout 900`."""
    return min(TEN_MILLION, int(request.config.getoption("iterations")))


def test_iterations_one_after_another_up_to_the_ten_millionth_do_not_drift(steps: int) -> None:
    anchor, interval = MIDNIGHT + 1, 333
    series, planned = schedule(FixedRate(interval, anchor)), anchor + (TEN_MILLION - steps) * interval
    for _ in range(steps):
        planned = next_planned(series, planned, 1)  # type: ignore[assignment]  # a series without an end goes on
    assert planned == anchor + TEN_MILLION * interval


def test_turns_one_after_another_each_a_little_late_deliver_every_firing_and_do_not_drift(steps: int) -> None:
    interval, rules = 333, FiringRules()
    series = schedule(FixedRate(interval, MIDNIGHT), misfire="all")
    entry: Entry | None = Entry(series, Progress(MIDNIGHT + interval, arrival=7))
    for step in range(1, steps + 1):
        assert entry is not None
        turn = take_turn(entry, MIDNIGHT + step * interval + step % 100, rules)
        assert turn.delivers
        entry = turn.entry
    assert entry is not None
    assert (entry.progress.due, entry.progress.sequence) == (MIDNIGHT + (steps + 1) * interval, steps + 1)


@given(st.integers(1, 10**10), st.integers(-(10**13), 10**13), st.integers(0, 10**13))
def test_a_fixed_rate_is_always_whole_intervals_from_its_anchor(interval: int, anchor: int, after: int) -> None:
    following = next_planned(schedule(FixedRate(interval, anchor)), after, attempt=1)
    assert following is not None
    assert after < following <= after + interval
    assert (following - anchor) % interval == 0


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(None, MIDNIGHT + HOUR, id="without a start an interval after it was accepted"),
        pytest.param(MIDNIGHT + 5, MIDNIGHT + 5, id="at a start that is to come"),
        pytest.param(MIDNIGHT, MIDNIGHT, id="at a start that is this very ms"),
        pytest.param(MIDNIGHT - 1, MIDNIGHT - 1 + HOUR, id="a start that has passed is counted from"),
        pytest.param(MIDNIGHT - HOUR, MIDNIGHT + HOUR, id="and what it had now is not made up for"),
        pytest.param(MIDNIGHT - 100 * HOUR + 7, MIDNIGHT + 7, id="however long ago it was"),
        pytest.param(MIDNIGHT + 500 * HOUR, MIDNIGHT + 500 * HOUR, id="or is to come"),
    ],
)
def test_a_fixed_rate_begins(start: int | None, expected: int) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), start=start)
    assert isinstance(life.entry, Entry)
    assert life.entry.progress.due == expected
    assert isinstance(life.entry.schedule.trigger, FixedRate)
    assert life.entry.schedule.trigger.anchor == (MIDNIGHT if start is None else start)


# -- the others -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "start", "expected"),
    [
        pytest.param(FixedDelay(HOUR), None, MIDNIGHT + HOUR, id="a fixed delay waits it once"),
        pytest.param(FixedDelay(HOUR), MIDNIGHT + 9, MIDNIGHT + 9, id="or fires at its start"),
        pytest.param(FixedDelay(HOUR), MIDNIGHT, MIDNIGHT, id="start included"),
        pytest.param(FixedDelay(HOUR), MIDNIGHT - 9, MIDNIGHT, id="or at once if that has passed"),
        pytest.param(Cron("0 * * * *"), None, MIDNIGHT + HOUR, id="cron fires after it was accepted"),
        pytest.param(Cron("0 * * * *"), MIDNIGHT, MIDNIGHT, id="cron fires at a start that matches"),
        pytest.param(Cron("0 * * * *"), MIDNIGHT + 1, MIDNIGHT + HOUR, id="else at the first match after it"),
        pytest.param(Cron("0 * * * *"), MIDNIGHT - HOUR, MIDNIGHT + HOUR, id="and never before it was accepted"),
        pytest.param(Cron("30 9 * * *", "unix", "Europe/Berlin"), None, MIDNIGHT + 8 * HOUR + HOUR // 2, id="by zone"),
        pytest.param(Backoff((5, 7)), None, MIDNIGHT + 5, id="backoff waits its first interval"),
        pytest.param(Backoff((5, 7)), MIDNIGHT + 9, MIDNIGHT + 14, id="from its start on"),
        pytest.param(Backoff((5, 7)), MIDNIGHT - 9, MIDNIGHT + 5, id="or from now if that has passed"),
    ],
)
def test_a_series_begins(trigger: Series, start: int | None, expected: int) -> None:
    assert first(trigger, start=start) == expected


def test_a_single_firing_has_no_next_one() -> None:
    assert next_planned(schedule(Once(MIDNIGHT)), MIDNIGHT, attempt=1) is None


def test_schedules_that_share_a_cron_expression_share_the_search_for_its_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[int] = []
    search = CompiledCron.next_after

    def counted(self: CompiledCron, after: int) -> int | None:
        searched.append(after)
        return search(self, after)

    monkeypatch.setattr(CompiledCron, "next_after", counted)
    found = {next_of(Cron("7 3 29 2 *"), MIDNIGHT + day * 24 * HOUR) for day in (0, 0, 1, 0, 1)}
    assert searched == [MIDNIGHT, MIDNIGHT + 24 * HOUR]
    assert len(found) == 1


def test_a_fixed_delay_has_a_next_one_only_when_it_was_completed() -> None:
    assert next_planned(schedule(FixedDelay(HOUR)), MIDNIGHT, attempt=1) == NEVER


def test_cron_goes_from_match_to_match() -> None:
    assert times(Cron("*/20 * * * *"), MIDNIGHT, 4) == [MIDNIGHT + m * MINUTE for m in (20, 40, 60, 80)]
    assert times(Cron("0 9 29 2 *"), MIDNIGHT, 1) == [1_835_427_600_000]  # 2028-02-29T09:00Z


# -- backoff ----------------------------------------------------------------------------------------------------------


def intervals(series: Backoff, count: int) -> list[int]:
    at, found = MIDNIGHT, []
    planned: int | None = first(series)
    for attempt in range(1, count + 1):
        if planned is None:
            break
        found.append(planned - at)
        at = planned
        planned = next_planned(schedule(series), at, attempt)
    return found


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (Backoff((1_000, 2_000, 4_000, 16_000, 256_000)), [1_000, 2_000, 4_000, 16_000, 256_000]),
        (Backoff((5_000,)), [5_000]),
        (Backoff((), 1_000, 2.0, attempts=5), [1_000, 2_000, 4_000, 8_000, 16_000]),
        (Backoff((), 1_000, 10.0, 30_000, 4), [1_000, 10_000, 30_000, 30_000]),
        (Backoff((), 1_000, 1.0, attempts=3), [1_000] * 3),
        (Backoff((), 3, 1.5, attempts=5), [3, 5, 7, 11, 16]),
        (Backoff((), 1_000, 1.4, attempts=4), [1_000, 1_400, 1_960, 2_744]),
        (Backoff((), 10_000, 1.2, attempts=4), [10_000, 12_000, 14_400, 17_280]),
        (Backoff((), 100, 1.15, attempts=3), [100, 115, 133]),
        (Backoff((), 50, 2.0, 20, 3), [20, 20, 20]),
    ],
)
def test_a_backoff_series_fires_at_its_intervals_and_ends(series: Backoff, expected: list[int]) -> None:
    assert intervals(series, 100) == expected


def test_an_endless_backoff_series_ends_with_time_only() -> None:
    assert intervals(Backoff((), 1_000, 1.0), 5_000) == [1_000] * 5_000
    doubling = intervals(Backoff((), 1, 2.0), 100)
    assert doubling == [2**step for step in range(len(doubling))]
    assert MIDNIGHT + sum(doubling) <= LATEST_INSTANT < MIDNIGHT + 2 * sum(doubling) + 1


@pytest.mark.parametrize("attempt", [10, 400, 1_000, 1_000_000])
def test_intervals_too_large_to_count_are_the_longest(attempt: int) -> None:
    assert backoff_interval(Backoff((), 1_000, 1_000.0, HOUR), attempt) == HOUR
    assert backoff_interval(Backoff((), 1_000, 1_000.0), attempt) == LATEST_INSTANT


@pytest.mark.parametrize(
    ("series", "last"), [(Backoff((1, 2, 3)), 3), (Backoff((), 1, attempts=7), 7), (Backoff((), 1), None)]
)
def test_the_last_attempt_is_known(series: Backoff, last: int | None) -> None:
    assert [attempt for attempt in range(1, 20) if is_last_attempt(series, attempt)][:1] == ([last] if last else [])


def test_every_interval_of_a_backoff_series_is_longer_by_at_most_its_spread_and_each_schedules_differs() -> None:
    series = Backoff((), 10_000, 2.0, 40_000, attempts=4, spread=0.5)
    seen: list[set[int]] = [set(), set(), set(), set()]
    for number in range(300):
        at, id = MIDNIGHT, f"job-{number}"
        planned = first_planned(series, NO_BOUNDS, MIDNIGHT, "acme", id)
        for attempt, base in enumerate((10_000, 20_000, 40_000, 40_000), 1):
            assert planned is not None
            assert base <= planned - at <= base * 3 // 2
            seen[attempt - 1].add(planned - at)
            at, planned = planned, next_planned(schedule(series, id), planned, attempt)
        assert planned is None
    assert all(len(each) > 250 for each in seen)


# -- bounds -----------------------------------------------------------------------------------------------------------

ALL: list[Series] = [
    FixedRate(HOUR, MIDNIGHT),
    Cron("0 * * * *"),
    Backoff((HOUR,) * 9),
]


@pytest.mark.parametrize("trigger", ALL)
def test_the_end_is_included_and_nothing_lies_after_it(trigger: Series) -> None:
    assert times(trigger, MIDNIGHT, 20, end=MIDNIGHT + 3 * HOUR) == [MIDNIGHT + n * HOUR for n in (1, 2, 3)]
    assert times(trigger, MIDNIGHT, 20, end=MIDNIGHT + 3 * HOUR - 1) == [MIDNIGHT + n * HOUR for n in (1, 2)]


@pytest.mark.parametrize("trigger", [*ALL, FixedDelay(HOUR)])
def test_a_series_that_would_begin_after_its_end_is_refused(trigger: Series) -> None:
    assert first(trigger, end=MIDNIGHT + HOUR) == MIDNIGHT + HOUR
    assert first(trigger, end=MIDNIGHT + HOUR - 1) is None
    with pytest.raises(InvalidCommand) as caught:
        Life().schedule(trigger, end=MIDNIGHT + HOUR - 1)
    assert caught.value.field == "schedule-end"


def test_a_cron_expression_that_never_matches_is_refused() -> None:
    with pytest.raises(InvalidCommand) as caught:
        Life().schedule(Cron("0 0 30 2 *"))
    assert caught.value.field == "schedule-cron"


FOR_EVER = 3_650_000 * 24 * HOUR


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        (FixedRate(FOR_EVER), "schedule-every"),
        (FixedDelay(FOR_EVER), "schedule-every"),
        (Backoff((FOR_EVER, SECOND)), "schedule-backoff"),
        (Backoff((), FOR_EVER), "schedule-backoff"),
    ],
)
def test_a_series_that_first_fires_after_the_year_9999_is_refused_by_its_own_field(trigger: Series, field: str) -> None:
    with pytest.raises(InvalidCommand) as caught:
        Life().schedule(trigger)
    assert (caught.value.field, caught.value.reason) == (field, "first fires after the year 9999")


@pytest.mark.parametrize("trigger", [FixedRate(HOUR, 0), Backoff((), HOUR, 1.0)])
def test_nothing_is_planned_after_the_year_9999(trigger: Series) -> None:
    assert next_planned(schedule(trigger), LATEST_INSTANT - SECOND, attempt=1) is None


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (FixedRate(HOUR), [1, 2, 3]),
        (Cron("0 * * * *"), [1, 2, 3]),
        (Backoff((HOUR, HOUR, HOUR, HOUR)), [1, 2, 3]),
    ],
)
def test_a_series_fires_no_more_than_its_maximum_and_says_that_it_has_ended(
    trigger: Series, expected: list[int]
) -> None:
    life = Life()
    life.schedule(trigger, max_firings=3)
    life.run(MIDNIGHT + 10 * HOUR)
    assert life.dues == [MIDNIGHT + n * HOUR for n in expected]
    assert life.entry is None
    assert life.events == ["scheduled", "fired", "fired", "fired", "finished"]
    assert [line.sequence for line in life.told[1:4]] == [1, 2, 3]
