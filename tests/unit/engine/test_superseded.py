"""What a series owed when a command replaces or reschedules it: the history counts what is not delivered any more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.life import HOUR, LIMITS, MIDNIGHT, MINUTE, SECOND, SOURCE, Life, Told
from support.tries import tries

from light_scheduler.engine import decide_bulk, misfire, recurrence
from light_scheduler.model import (
    Backoff,
    Cron,
    EventType,
    FixedDelay,
    FixedRate,
    Once,
    RescheduleCommand,
    Selection,
    Timing,
)

M = MIDNIGHT
NINE, FIVE_PAST = M + 9 * HOUR, M + 9 * HOUR + 5 * MINUTE
HOURLY = Cron("0 * * * *")


def skipped(life: Life) -> list[tuple[int, int]]:
    """Return when the first of the firings that were skipped was due, and how many there were, for each line."""
    return [(line.due, line.stands_for) for line in life.told if line.event is EventType.SKIPPED]


def test_a_series_that_is_sent_again_after_a_time_that_no_worker_delivered_tells_that_it_is_skipped() -> None:
    life = Life()
    life.schedule(Cron("0 9 * * *"))
    decision = life.schedule(Cron("0 9 * * *"), NINE + 10 * MINUTE, recorded_at=FIVE_PAST)
    assert life.told == [
        Told(EventType.SCHEDULED, NINE, 1, 1),
        Told(EventType.SKIPPED, NINE, 1, 1, stands_for=1),
        Told(EventType.UPDATED, NINE + 24 * HOUR, 1, 1),
    ]
    assert decision.skipped is not None
    assert decision.skipped.reason == (
        "not delivered before a command of 2026-01-01T09:05:00.000Z replaced the schedule"
    )


@pytest.mark.parametrize("old", [HOURLY, FixedRate(HOUR), Cron("0 * * * *", timezone="Asia/Tokyo")])
@pytest.mark.parametrize(
    "new", [HOURLY, FixedRate(7 * MINUTE), FixedDelay(HOUR), Backoff((HOUR,)), Once(M + 99 * HOUR)]
)
@pytest.mark.parametrize("command", ["schedule", "reschedule"])
def test_all_times_until_the_command_was_recorded_are_counted_whatever_follows(
    old: Timing, new: Timing, command: str
) -> None:
    life = Life()
    life.schedule(old)
    life.run(M + 2 * HOUR)
    getattr(life, command)(new, FIVE_PAST + HOUR, recorded_at=FIVE_PAST)
    assert skipped(life) == [(M + 3 * HOUR, 7)]


def test_times_after_the_command_was_recorded_are_those_of_the_new_definition() -> None:
    life = Life()
    life.schedule(HOURLY, misfire="all")
    life.schedule(HOURLY, M + 3 * HOUR, recorded_at=M + HOUR, misfire="all")
    life.tick(M + 3 * HOUR)
    assert skipped(life) == [(M + HOUR, 1)]
    assert life.dues == [M + 2 * HOUR, M + 3 * HOUR]


@pytest.mark.parametrize(("recorded_at", "expected"), [(M + 9 * HOUR, 3), (-1, 3), (M + HOUR, 1), (M, 0)])
def test_a_command_counts_from_when_it_was_recorded_and_not_later_than_it_was_read(
    recorded_at: int, expected: int
) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR))
    life.schedule(Once(M + 99 * HOUR), M + 3 * HOUR, recorded_at=recorded_at)
    assert [count for _, count in skipped(life)] == [expected] * bool(expected)


@pytest.mark.parametrize("old", [Once(M + HOUR), Backoff((HOUR, HOUR))])
def test_what_fires_once_and_a_backoff_get_another_time_and_skip_nothing(old: Timing) -> None:
    life = Life()
    life.schedule(old)
    life.schedule(HOURLY, M + 9 * HOUR)
    assert skipped(life) == []


def test_what_was_delivered_is_not_skipped() -> None:
    life = Life()
    life.schedule(HOURLY)
    life.tick(M + HOUR)
    life.schedule(HOURLY, M + 2 * HOUR - 1)
    assert skipped(life) == []


def test_a_run_of_a_fixed_delay_that_was_due_is_counted_and_one_that_is_on_is_not() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.schedule(FixedDelay(HOUR), M + 9 * HOUR)
    assert skipped(life) == [(M + HOUR, 1)]
    life.tick(M + 10 * HOUR)
    life.schedule(FixedDelay(HOUR), M + 10 * HOUR + 1)
    assert len(skipped(life)) == 1


def test_a_refused_firing_that_waited_for_its_retry_is_counted() -> None:
    life = Life()
    life.schedule(HOURLY)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.tick(M + HOUR)
    life.schedule(HOURLY, M + HOUR + SECOND)
    assert life.events == ["scheduled", "retried", "skipped", "updated"]
    assert skipped(life) == [(M + HOUR, 1)]


def test_a_firing_that_jitter_has_moved_behind_the_command_is_counted_if_its_planned_time_has_passed() -> None:
    life = Life()
    life.schedule(HOURLY, jitter=30 * MINUTE)
    assert life.entry is not None
    due = life.entry.progress.due
    assert due > M + HOUR + SECOND
    life.schedule(HOURLY, M + HOUR + SECOND, jitter=30 * MINUTE)
    assert skipped(life) == [(due, 1)]


@pytest.mark.parametrize("command", ["schedule", "reschedule"])
def test_a_queued_firing_is_counted_unless_it_stays_queued(command: str) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="queue")
    life.run(M + 2 * HOUR)
    getattr(life, command)(FixedRate(HOUR), M + 2 * HOUR + MINUTE)
    assert skipped(life) == ([(M + 2 * HOUR, 1)] if command == "schedule" else [])


def test_a_queued_firing_that_a_reschedule_to_a_single_time_drops_is_counted_with_what_is_behind_it() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="queue")
    life.run(M + 2 * HOUR)
    life.reschedule(Once(M + 99 * HOUR), M + 5 * HOUR)
    assert skipped(life) == [(M + 2 * HOUR, 4)]


def test_a_triggered_firing_that_waited_for_its_retry_is_counted() -> None:
    life = Life()
    life.schedule(HOURLY)
    life.control("trigger", M + MINUTE)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.tick(M + MINUTE)
    life.schedule(HOURLY, M + MINUTE + 1)
    assert skipped(life) == [(M + MINUTE, 1)]


def test_a_triggered_firing_of_a_backoff_that_waited_for_its_retry_is_counted() -> None:
    life = Life()
    life.schedule(Backoff((HOUR, HOUR)))
    life.control("trigger", M + MINUTE)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.tick(M + MINUTE)
    life.schedule(HOURLY, M + 9 * HOUR)
    assert skipped(life) == [(M + MINUTE, 1)]


def test_what_waits_beside_a_past_single_time_is_counted_and_a_triggered_one_shot_is_not() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="queue")
    life.run(M + 2 * HOUR)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.control("trigger", M + 2 * HOUR + MINUTE)
    life.reschedule(Once(M + HOUR), M + 2 * HOUR + 2 * MINUTE)
    assert skipped(life) == [], "both are kept"
    life.schedule(HOURLY, M + 2 * HOUR + 3 * MINUTE)
    assert skipped(life) == [(M + 2 * HOUR, 2)]
    life.reschedule(Once(M + 99 * HOUR), M + 2 * HOUR + 4 * MINUTE)
    life.control("trigger", M + 2 * HOUR + 5 * MINUTE)
    life.schedule(HOURLY, M + 2 * HOUR + 6 * MINUTE)
    assert len(skipped(life)) == 1


@pytest.mark.parametrize(
    ("new", "bounds"),
    [(Once(M + 2 * HOUR), {}), (HOURLY, {"start": M + 3 * HOUR}), (FixedRate(5), {"start": M + HOUR})],
)
def test_a_time_that_the_new_definition_delivers_itself_is_not_skipped(new: Timing, bounds: dict[str, Any]) -> None:
    life = Life()
    life.schedule(HOURLY)
    at = M + HOUR if isinstance(new, FixedRate) else M + 3 * HOUR
    life.schedule(new, at, **bounds)
    begins = life.entry.progress.due if life.entry is not None else 0
    missed = [due for due in range(M + HOUR, at + 1, HOUR) if due != begins]
    assert skipped(life) == [(due, len(missed)) for due in missed[:1]]


def test_a_paused_series_tells_that_it_was_paused() -> None:
    life = Life()
    life.schedule(HOURLY, paused=True)
    decision = life.reschedule(HOURLY, M + 5 * HOUR)
    assert skipped(life) == [(M + HOUR, 5)]
    assert decision.skipped is not None
    assert decision.skipped.reason.endswith("rescheduled the schedule, which was paused")


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ({"end": M + 3 * HOUR}, 3),
        ({"max_firings": 2, "misfire": "all"}, 2),
        ({"max_firings": 2}, 9),  # those that are left out do not count
        ({"max_firings": 2, "misfire_grace": 5 * HOUR}, 5),  # from 4 on they are in time
    ],
)
def test_times_that_a_series_does_not_have_are_not_counted(bounds: dict[str, Any], count: int) -> None:
    life = Life()
    life.schedule(HOURLY, **bounds)
    life.schedule(HOURLY, M + 9 * HOUR)
    assert skipped(life) == [(M + HOUR, count)]


@pytest.mark.parametrize("old", [HOURLY, FixedRate(HOUR)])
@pytest.mark.parametrize(
    ("bounds", "at", "count"),
    [
        ({"end": M + 3 * HOUR}, 3, 2),
        ({"end": M + 3 * HOUR}, 4, 3),
        ({"max_firings": 2, "misfire": "all"}, 2, 1),
        ({"max_firings": 2, "misfire": "all"}, 3, 2),
        ({"max_firings": 2, "misfire_grace": 5 * HOUR}, 3, 4),
        ({"max_firings": 2, "misfire_grace": 5 * HOUR}, 5, 4),
        ({"max_firings": 2, "misfire_grace": 5 * HOUR}, 6, 5),
        ({"max_firings": 2}, 9, 8),
    ],
)
def test_a_time_that_the_new_definition_delivers_is_taken_off_only_if_the_old_one_had_it(
    old: Timing, bounds: dict[str, Any], at: int, count: int
) -> None:
    life = Life()
    life.schedule(old, **bounds)
    life.schedule(Once(M + at * HOUR, late=True), M + 9 * HOUR)
    assert [count for _, count in skipped(life)] == [count]


def test_what_an_ended_series_owed_is_told_before_why_it_ended() -> None:
    life = Life()
    life.schedule(Cron("*/5 * * * *"))
    life.run(M + 5 * MINUTE)
    life.reschedule(Once(M + 5 * MINUTE), M + 15 * MINUTE)
    assert life.events == ["scheduled", "fired", "skipped", "updated", "finished"]
    assert skipped(life) == [(M + 10 * MINUTE, 2)]


def test_a_year_of_seconds_is_counted() -> None:
    life = Life()
    life.schedule(Cron("* * * * * *"))
    life.schedule(HOURLY, M + 365 * 24 * HOUR)
    assert skipped(life) == [(M + SECOND, 365 * 24 * 3_600)]


@pytest.mark.parametrize("bounds", [{}, {"max_firings": 9}, {"misfire_grace": 40 * HOUR, "max_firings": 9**9}])
def test_what_is_counted_is_counted_once_and_not_gone_through(
    bounds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spans: list[tuple[int, int]] = []

    def times_between(trigger: Cron, after: int, until: int) -> int:
        spans.append((after, until))
        return count(trigger, after, until)

    count = recurrence.times_between
    monkeypatch.setattr(misfire, "times_between", times_between)
    monkeypatch.delattr(misfire, "next_of")
    life = Life()
    life.schedule(Cron("* * * * *"), **bounds)
    until = M + 40 * 24 * HOUR
    life.schedule(HOURLY, until)
    assert [count for _, count in skipped(life)] == [40 * 24 * 60]
    assert [spans[0][0], spans[-1][1]] == [M + MINUTE, until]
    assert [end for _, end in spans[:-1]] == [after for after, _ in spans[1:]]


def test_a_bulk_reschedule_tells_it_of_each_schedule() -> None:
    life = Life()
    life.schedule(HOURLY)
    assert life.entry is not None
    command = RescheduleCommand(
        **SOURCE | {"id": "*", "offset": 9}, timing=HOURLY, recorded_at=M + 2 * HOUR, selection=Selection("")
    )
    decision = decide_bulk(command, life.entry, M + 3 * HOUR, LIMITS)
    assert decision.skipped is not None
    assert decision.skipped.count == 2


@settings(max_examples=tries(500))
@given(
    st.lists(
        st.tuples(
            st.integers(1, 200),
            st.sampled_from(["tick", "tick", "resend", "reschedule", "pause", "resume", "refuse", "take"]),
            st.integers(0, 100),
        ),
        max_size=12,
    ),
    st.sampled_from(["coalesce", "skip", "all"]),
    st.sampled_from([0, 90 * SECOND]),
    st.sampled_from([0, 5 * MINUTE]),
    st.sampled_from([FixedRate(MINUTE, M), Cron("* * * * *")]),
)
def test_each_time_of_a_series_that_is_sent_again_is_delivered_or_told_to_be_skipped(
    steps: list[tuple[int, str, int]], misfire: str, jitter: int, grace: int, timing: Timing
) -> None:
    life, now = Life(), M
    life.schedule(timing, misfire=misfire, jitter=jitter, misfire_grace=grace)
    for pause, action, lag in steps:
        before, now = now, now + pause * 7 * SECOND
        match action:
            case "tick":
                life.tick(now)
            case "resend" | "reschedule":
                send = life.schedule if action == "resend" else life.reschedule
                sent_at = max(before, now - lag * SECOND)
                send(timing, now, recorded_at=sent_at, misfire=misfire, jitter=jitter, misfire_grace=grace)
            case "pause" | "resume":
                life.control("pause" if action == "pause" else "resume", now)
            case _:
                life.refuse = lambda due, attempt, action=action: "no topic" if action == "refuse" else None  # type: ignore[misc]
    life.refuse = lambda due, attempt: None
    life.control("resume", now)
    life.run(now + HOUR)
    dealt_with = {EventType.FIRED, EventType.SKIPPED, EventType.DEAD_LETTERED}
    told = sum(line.stands_for for line in life.told if line.event in dealt_with)
    assert life.entry is not None
    progress = life.entry.progress
    last = progress.due if progress.planned is None else progress.planned
    assert told == (last - M) // MINUTE - 1
