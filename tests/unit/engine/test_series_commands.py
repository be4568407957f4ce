"""Commands for schedules that do more than fire once: pause, resume, trigger, reschedule, replace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, SOURCE, Life
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.engine.overlap import MOST_AWAITED
from light_scheduler.model import (
    Backoff,
    ControlCommand,
    Cron,
    FixedDelay,
    FixedRate,
    Once,
    Outcome,
    Progress,
    RescheduleCommand,
    Timing,
)

M = MIDNIGHT
EVERY: list[Timing] = [Once(M + HOUR), FixedRate(HOUR), Cron("0 * * * *"), FixedDelay(HOUR), Backoff((HOUR, HOUR))]


def progress(life: Life) -> Progress:
    assert life.entry is not None
    return life.entry.progress


def version(life: Life) -> int:
    assert life.entry is not None
    return life.entry.schedule.version


@pytest.mark.parametrize("timing", EVERY)
def test_pause_and_resume_in_time_change_nothing_of_when_it_fires(timing: Timing) -> None:
    life, other = Life(), Life()
    for each in (life, other):
        each.schedule(timing)
    before = life.entry
    assert life.control("pause", M + 1).outcome is Outcome.PAUSED
    assert progress(life).next_due is None
    assert life.control("resume", M + 2).outcome is Outcome.RESUMED
    assert life.entry == before
    for each in (life, other):
        each.run(M + 5 * HOUR)
    assert life.delivered == other.delivered
    assert life.events[:3] == ["scheduled", "paused", "resumed"]


@pytest.mark.parametrize("timing", EVERY)
def test_pausing_twice_and_resuming_what_runs_are_answered_and_are_no_events(timing: Timing) -> None:
    life = Life()
    life.schedule(timing)
    assert life.control("resume", M).outcome is Outcome.RESUMED
    life.control("pause", M)
    assert life.control("pause", M + 1).outcome is Outcome.PAUSED
    assert life.events == ["scheduled", "paused"]


@pytest.mark.parametrize(("misfire", "hours"), [("coalesce", [3, 4]), ("skip", [4]), ("all", [1, 2, 3, 4])])
@pytest.mark.parametrize("timing", [FixedRate(HOUR), Cron("0 * * * *")])
def test_what_was_missed_while_paused_follows_the_misfire_policy(
    timing: Timing, misfire: str, hours: list[int]
) -> None:
    life = Life()
    life.schedule(timing, misfire=misfire, paused=True)
    life.run(M + 3 * HOUR + MINUTE)
    life.control("resume", M + 3 * HOUR + MINUTE)
    life.tick(M + 3 * HOUR + MINUTE)
    life.run(M + 4 * HOUR)
    assert life.dues == [M + hour * HOUR for hour in hours]


def test_a_single_firing_whose_time_passed_while_paused_fires_when_it_is_resumed() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), paused=True)
    life.control("resume", M + 5 * HOUR)
    life.tick(M + 5 * HOUR)
    assert [(f.at, f.due) for f in life.delivered] == [(M + 5 * HOUR, M + HOUR)]


@pytest.mark.parametrize("timing", EVERY)
@pytest.mark.parametrize("name", ["pause", "resume", "trigger", "cancel"])
def test_with_another_version_than_it_expects_a_control_command_changes_nothing(timing: Timing, name: Any) -> None:
    life = Life()
    life.schedule(timing)
    before = life.entry
    command = ControlCommand(name, **SOURCE, recorded_at=M, expected_version=2)
    assert life.send(command, M).outcome is Outcome.CONFLICT
    assert life.entry == before
    reschedule = RescheduleCommand(**SOURCE, timing=Once(M), recorded_at=M, expected_version=2)
    assert life.send(reschedule, M).outcome is Outcome.CONFLICT
    assert life.entry == before
    ours = msgspec.structs.replace(command, expected_version=1)
    assert life.send(ours, M).outcome is not Outcome.CONFLICT


@pytest.mark.parametrize("name", ["pause", "resume", "trigger", "cancel"])
def test_what_is_not_there_is_not_found(name: Any) -> None:
    life = Life()
    assert life.control(name, M).outcome is Outcome.NOT_FOUND
    assert life.reschedule(Once(M), M).outcome is Outcome.NOT_FOUND
    assert life.complete(M, M) is Outcome.NOT_FOUND
    assert not life.told


# -- reschedule -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", EVERY)
@pytest.mark.parametrize("new", [Once(M + 90 * MINUTE), FixedRate(90 * MINUTE), Cron("30 1 * * *")])
@pytest.mark.parametrize("paused", [False, True])
def test_a_rescheduled_schedule_fires_at_its_new_times_only(old: Timing, new: Timing, paused: bool) -> None:
    life = Life()
    life.schedule(old, ttl=HOUR, priority=3, labels={"a": "b"}, paused=paused)
    definition = life.entry
    assert definition is not None
    decision = life.reschedule(new, M)
    assert (decision.outcome, version(life)) == (Outcome.RESCHEDULED, 2)
    assert life.entry is not None
    kept = {"target", "payload", "headers", "ttl", "priority", "labels", "source_offset"}
    for field in kept:
        assert getattr(life.entry.schedule, field) == getattr(definition.schedule, field)
    life.run(M + 2 * HOUR)
    assert life.dues == ([] if paused else [M + 90 * MINUTE])


def test_a_reschedule_replaces_the_whole_time_rule_with_bounds_jitter_window_and_misfire_policy() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), end=M + 9 * HOUR, jitter=MINUTE, window=MINUTE, misfire="all")
    life.reschedule(FixedRate(MINUTE), M)
    assert life.entry is not None
    assert life.entry.schedule.bounds is None


def test_a_rescheduled_series_begins_its_count_anew() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), max_firings=3)
    life.run(M + 2 * HOUR)
    life.reschedule(FixedRate(MINUTE), M + 2 * HOUR, max_firings=2)
    life.run(M + 9 * HOUR)
    assert life.dues[2:] == [M + 2 * HOUR + MINUTE, M + 2 * HOUR + 2 * MINUTE]


def test_what_a_rescheduled_series_has_delivered_is_still_awaited() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + HOUR)
    life.reschedule(FixedRate(24 * HOUR), M + HOUR + 1)
    life.run(M + 2 * HOUR)
    assert [(f.due, f.attempt) for f in life.delivered] == [(M + HOUR, 1), (M + HOUR, 2)]
    assert life.dead == [("unacknowledged", M + HOUR)]
    assert progress(life).due == M + HOUR + 1 + 24 * HOUR


def test_a_single_firing_that_was_delivered_and_is_rescheduled_waits_for_its_new_time() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + HOUR)
    life.reschedule(Once(M + 3 * HOUR), M + HOUR + 1)
    life.run(M + 3 * HOUR)
    assert life.dues == [M + HOUR, M + 3 * HOUR]
    assert life.complete(M + 3 * HOUR, M + 3 * HOUR + 1) is Outcome.COMPLETED
    assert life.entry is None


@pytest.mark.parametrize("old", [FixedRate(HOUR), Cron("0 * * * *")])
@pytest.mark.parametrize(
    ("new", "bounds", "following"),
    [
        (FixedRate(HOUR), {"start": M}, 3 * HOUR),
        (FixedRate(30 * MINUTE), {"start": M}, 2 * HOUR + 30 * MINUTE),
        (FixedRate(HOUR), {"start": M + 2 * HOUR}, 3 * HOUR),
        (Cron("0 * * * *"), {}, 3 * HOUR),
        (Cron("*/20 * * * *"), {}, 2 * HOUR + 20 * MINUTE),
        (Once(M + 2 * HOUR + 1), {}, 2 * HOUR + 1),
    ],
)
def test_what_was_delivered_before_a_reschedule_is_carried_out_is_not_delivered_again(
    old: Timing, new: Timing, bounds: dict[str, int], following: int
) -> None:
    life = Life()
    life.schedule(old)
    life.run(M + 2 * HOUR)
    life.reschedule(new, M + 2 * HOUR + 1, recorded_at=M + 2 * HOUR - 5, **bounds)
    life.run(M + 3 * HOUR)
    assert life.dues[:3] == [M + HOUR, M + 2 * HOUR, M + following]
    assert version(life) == 2 if life.entry is not None else isinstance(new, Once)


def test_a_reschedule_that_leaves_only_what_was_delivered_ends_the_series() -> None:
    for new, bounds in (
        (Once(M + HOUR), {}),
        (Cron("0 * * * *"), {"end": M + HOUR}),
        (FixedRate(HOUR), {"start": M, "end": M + HOUR}),
    ):
        life = Life()
        life.schedule(FixedRate(HOUR))
        life.run(M + HOUR)
        decision = life.reschedule(new, M + HOUR + 1, recorded_at=M + HOUR - 1, **bounds)
        assert (decision.outcome, life.entry) == (Outcome.RESCHEDULED, None)
        assert life.events == ["scheduled", "fired", "updated", "finished"]


@pytest.mark.parametrize("old", [FixedRate(HOUR), Cron("0 * * * *"), FixedDelay(HOUR)])
@pytest.mark.parametrize("at", [M + HOUR - 7, M + 3])
def test_a_series_that_is_rescheduled_to_an_instant_of_the_past_which_it_did_not_have_fires_once_more(
    old: Timing, at: int
) -> None:
    life = Life()
    life.schedule(old)
    life.run(M + HOUR)
    decision = life.reschedule(Once(at), M + HOUR + 1_000, recorded_at=M + HOUR + 500)
    assert (decision.outcome, decision.reason) == (Outcome.RESCHEDULED, "rescheduled")
    for sent_again in (at, at - 1):
        life.reschedule(Once(sent_again), M + HOUR + 1_001, recorded_at=M + HOUR + 500)
    life.run(M + 9 * HOUR)
    assert life.dues == [M + HOUR, M + HOUR + 1], "firings are named by their instants"


def test_a_time_that_a_rescheduled_series_delivered_is_not_delivered_again_by_a_late_command() -> None:
    life = Life()
    life.schedule(Cron("* * * * *"))
    life.run(M + 2 * MINUTE)
    life.reschedule(Cron("0 * * * *"), M + 150_000, recorded_at=M + 20_000)
    life.reschedule(Once(M + MINUTE), M + 150_001, recorded_at=M + 25_000)
    life.run(M + HOUR)
    assert life.dues == [M + MINUTE, M + 2 * MINUTE]


def test_a_time_that_a_replaced_series_delivered_is_not_delivered_again_by_a_command_from_before_that() -> None:
    life = Life()
    life.schedule(Cron("*/30 * * * *"))
    life.run(M + 90 * MINUTE)
    life.schedule(Cron("*/30 * * * *"), M + 90 * MINUTE + 5_000)
    life.schedule(Cron("0 * * * *"), M + 90 * MINUTE + 6_000, recorded_at=M + 59 * MINUTE)
    life.run(M + 2 * HOUR)
    assert life.dues == [M + 30 * MINUTE, M + HOUR, M + 90 * MINUTE, M + 2 * HOUR]


@pytest.mark.parametrize("at", [M + HOUR, M + HOUR - 3])
def test_a_single_firing_that_was_delivered_keeps_waiting_if_its_new_time_is_not_after_that(at: int) -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + HOUR)
    assert life.reschedule(Once(at), M + HOUR + 1, recorded_at=at - 1).outcome is Outcome.RESCHEDULED
    life.run(M + 3 * HOUR)
    assert [(f.due, f.attempt) for f in life.delivered] == [(M + HOUR, 1), (M + HOUR, 2)]
    assert life.dead == [("unacknowledged", M + HOUR)]


@pytest.mark.parametrize("new", [FixedDelay(SECOND), Backoff((SECOND, SECOND)), FixedRate(MINUTE)])
def test_a_single_firing_that_was_delivered_keeps_waiting_if_its_new_series_has_ended_by_then(new: Timing) -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + HOUR)
    decision = life.reschedule(new, M + HOUR + 1, recorded_at=M + HOUR - 5 * MINUTE, end=M + HOUR)
    gives_up = f"; gives up what was delivered and not completed, which was due at {M + HOUR}"
    assert (decision.outcome, decision.reason) == (
        Outcome.RESCHEDULED,
        "rescheduled: its new times have been delivered" + gives_up * isinstance(new, Backoff),
    )
    if isinstance(new, Backoff):  # which has no completion besides its own
        assert life.finished == "its new times have been delivered"
    else:
        assert life.complete(M + HOUR, M + HOUR + 2) is Outcome.COMPLETED
        assert life.finished == "no firing is left before its end"


def test_a_triggered_single_firing_is_not_delivered_again_by_a_reschedule_to_before_that() -> None:
    life = Life()
    life.schedule(Once(M + 9 * HOUR), timeout=HOUR, max_attempts=1)
    life.control("trigger", M + 5)
    life.tick(M + 5)
    life.reschedule(Once(M + 5), M + 7, recorded_at=M + 4)
    life.run(M + 30 * MINUTE)
    assert life.dues == [M + 5]


def test_what_was_triggered_of_a_series_takes_no_time_of_a_new_plan_away() -> None:
    life = Life()
    life.schedule(FixedRate(9 * HOUR))
    life.control("trigger", M + HOUR + 500)
    life.tick(M + HOUR + 500)
    life.reschedule(Once(M + HOUR), M + HOUR + 501, recorded_at=M + HOUR - 1)
    life.run(M + 2 * HOUR)
    assert life.dues == [M + HOUR + 500, M + HOUR]


@pytest.mark.parametrize("new", [FixedDelay(SECOND), Backoff((SECOND, SECOND))])
def test_a_new_plan_that_counts_from_its_command_begins_after_what_was_delivered(new: Timing) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR))
    life.run(M + HOUR)
    life.reschedule(new, M + HOUR + 1, recorded_at=M + HOUR - 5 * SECOND)
    life.run(M + HOUR + 1)
    assert life.dues == [M + HOUR, M + HOUR + 1]


RESCHEDULED = st.sampled_from(
    [
        (FixedRate(MINUTE), {"start": M}),
        (FixedRate(7 * MINUTE), {}),
        (FixedRate(MINUTE), {"start": M, "jitter": 40 * SECOND}),
        (Cron("* * * * *"), {}),
        (Cron("*/3 * * * *"), {"jitter": 5 * MINUTE}),
        (Once(M + 10 * MINUTE), {}),
        (FixedDelay(2 * MINUTE), {}),
    ]
)


@settings(max_examples=tries(200))
@given(
    RESCHEDULED,
    st.lists(st.tuples(st.integers(1, 4 * MINUTE), st.integers(0, 3 * MINUTE), RESCHEDULED), max_size=8),
    st.sampled_from([{}, {"timeout": 90 * SECOND, "max_attempts": 2}]),
)
def test_no_firing_comes_twice_however_often_and_late_a_schedule_is_rescheduled(
    first: tuple[Timing, dict[str, int]],
    steps: list[tuple[int, int, tuple[Timing, dict[str, int]]]],
    waits: dict[str, int],
) -> None:
    life = Life()
    now = M
    life.schedule(first[0], M, **first[1], **waits)
    for pause, late, (timing, bounds) in steps:
        now += pause
        life.run(now)
        life.reschedule(timing, now, recorded_at=max(M, now - late), **bounds)
    life.run(now + 10 * MINUTE)
    named = [(firing.due, firing.attempt) for firing in life.delivered]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize(
    ("new", "bounds", "following"),
    [
        (Cron("*/1 * * * *"), {}, 3 * MINUTE),
        (Cron("*/4 * * * *"), {}, 4 * MINUTE),
        (FixedRate(MINUTE), {"start": M}, 3 * MINUTE),
        (FixedRate(MINUTE), {"start": M + 2 * MINUTE}, 3 * MINUTE),
    ],
)
def test_a_firing_that_is_queued_when_its_series_is_rescheduled_is_delivered_once(
    new: Timing, bounds: dict[str, int], following: int
) -> None:
    life = Life()
    life.schedule(Cron("* * * * *"), timeout=HOUR, overlap="queue")
    life.run(M + 2 * MINUTE)
    life.reschedule(new, M + 2 * MINUTE + 10, recorded_at=M + 2 * MINUTE - 10, **bounds)
    for due in (M + MINUTE, M + 2 * MINUTE):
        life.complete(due, M + 2 * MINUTE + 10)
        life.run(M + 2 * MINUTE + 10)
    life.run(M + 4 * MINUTE)
    assert life.dues == [M + MINUTE, M + 2 * MINUTE, M + following]


def test_a_reschedule_that_leaves_only_what_is_queued_says_so() -> None:
    life = Life()
    life.schedule(Cron("* * * * *"), timeout=HOUR, overlap="queue")
    life.run(M + 2 * MINUTE)
    now = M + 2 * MINUTE + 10
    decision = life.reschedule(Cron("* * * * *"), now, recorded_at=now - 20, end=M + 2 * MINUTE)
    assert decision.reason == "rescheduled: its new times have been delivered, or are queued"
    life.complete(M + MINUTE, now)
    life.run(now)
    life.complete(M + 2 * MINUTE, now)
    assert (life.dues, life.entry) == ([M + MINUTE, M + 2 * MINUTE], None)


def test_a_firing_that_is_queued_never_shares_its_time_with_a_fixed_delay_that_its_series_becomes() -> None:
    life = Life()
    life.schedule(Cron("* * * * *"), timeout=HOUR, overlap="queue")
    life.run(M + 2 * MINUTE)
    life.control("pause", M + 2 * MINUTE)
    life.complete(M + MINUTE, M + 2 * MINUTE)
    life.reschedule(FixedDelay(HOUR), M + 2 * MINUTE + 10, recorded_at=M + 2 * MINUTE - 10, start=M + 2 * MINUTE)
    life.control("resume", M + 2 * MINUTE + 10)
    life.run(M + 2 * MINUTE + 10)
    life.complete(M + 2 * MINUTE, M + 2 * MINUTE + 10)
    life.run(M + 2 * MINUTE + 10)
    assert life.dues == [M + MINUTE, M + 2 * MINUTE, M + 2 * MINUTE + 1]


def test_the_run_of_a_fixed_delay_that_is_on_is_followed_by_the_new_delay() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.tick(M + HOUR)
    life.reschedule(FixedDelay(MINUTE), M + HOUR + 1)
    life.run(M + HOUR + 2 * MINUTE)
    assert life.complete(M + HOUR, M + HOUR + 2 * MINUTE) is Outcome.COMPLETED
    life.run(M + HOUR + 3 * MINUTE)
    assert life.dues == [M + HOUR, M + HOUR + 3 * MINUTE]


def test_a_fixed_delay_that_becomes_something_else_asks_for_no_completion_it_was_not_told_of() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.reschedule(Once(M + MINUTE), M)
    life.run(M + HOUR)
    assert life.dues == [M + MINUTE]
    assert (life.entry, life.dead) == (None, [])


def test_a_backoff_series_fires_on_whatever_overlap_it_had_as_another_series() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=MINUTE, overlap="skip")
    life.reschedule(Backoff((SECOND, SECOND, SECOND)), M)
    life.run(M + HOUR)
    assert life.dues == [M + n * SECOND for n in (1, 2, 3)]


# -- trigger ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", EVERY)
def test_a_trigger_answers_with_now_and_changes_no_version(timing: Timing) -> None:
    life = Life()
    life.schedule(timing)
    decision = life.control("trigger", M + 5)
    assert decision.outcome is Outcome.TRIGGERED
    assert progress(life).next_due == M + 5
    assert version(life) == 1


def test_triggers_that_pile_up_before_a_target_that_refuses_are_refused_in_the_end() -> None:
    life = Life(FiringRules(retries=1_000))
    life.schedule(FixedRate(HOUR))
    for n in range(MOST_AWAITED):
        assert life.control("trigger", M + n).outcome is Outcome.TRIGGERED
    decision = life.control("trigger", M + MOST_AWAITED)
    assert decision.outcome is Outcome.CONFLICT
    assert "wait already" in (decision.reason or "")


def test_a_trigger_after_the_clock_was_set_back_fires_at_once() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), paused=True)
    life.refuse = lambda due, attempt: "no"
    life.control("trigger", M + 10 * SECOND)
    life.tick(M + 10 * SECOND)
    life.refuse = lambda due, attempt: None
    life.control("trigger", M + 5 * SECOND)
    life.tick(M + 5 * SECOND)
    assert life.dues == [M + 5 * SECOND]
    life.tick(M + 10 * SECOND)
    assert life.dues == [M + 5 * SECOND, M + 10 * SECOND]


# -- replace ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", EVERY)
@pytest.mark.parametrize("new", EVERY)
def test_replace_forgets_whatever_the_old_schedule_had_begun(old: Timing, new: Timing) -> None:
    life, fresh = Life(), Life()
    life.schedule(old, timeout=MINUTE, overlap="queue")
    life.run(M + HOUR)
    life.control("trigger", M + HOUR)
    life.control("pause", M + HOUR)
    life.schedule(new, at=M + HOUR)
    fresh.schedule(new, at=M + HOUR)
    goes_on = isinstance(new, FixedRate | Cron)  # after the last firing of the old one
    assert progress(life) == msgspec.structs.replace(progress(fresh), delivered=M + HOUR if goes_on else 0)
    assert life.entry is not None
    assert fresh.entry is not None
    assert msgspec.structs.replace(life.entry.schedule, version=1) == fresh.entry.schedule


@pytest.mark.parametrize("waits", [{}, {"timeout": HOUR, "max_attempts": 3}])
@pytest.mark.parametrize(
    ("old", "new", "bounds", "following"),
    [
        (Cron("0 * * * *"), Cron("0 * * * *"), {}, 3 * HOUR),
        (Cron("0 * * * *"), Cron("*/20 * * * *"), {}, 2 * HOUR + 20 * MINUTE),
        (FixedRate(HOUR), FixedRate(HOUR), {"start": M}, 3 * HOUR),
        (FixedRate(HOUR), FixedRate(HOUR), {"start": M + 2 * HOUR}, 3 * HOUR),
        (FixedRate(HOUR), Cron("0 * * * *"), {}, 3 * HOUR),
    ],
)
def test_what_was_delivered_before_a_replacement_is_carried_out_is_not_delivered_again(
    old: Timing, new: Timing, bounds: dict[str, int], following: int, waits: dict[str, int]
) -> None:
    life = Life()
    life.schedule(old, **waits)
    life.run(M + 2 * HOUR)
    life.schedule(new, M + 2 * HOUR + 1, recorded_at=M + 2 * HOUR - 5, **bounds)
    assert version(life) == 2
    life.reschedule(new, M + 2 * HOUR + 2, recorded_at=M + 2 * HOUR - 4, **bounds)
    life.run(M + 3 * HOUR)
    assert [firing.due for firing in life.delivered if firing.attempt == 1][:3] == [
        M + HOUR,
        M + 2 * HOUR,
        M + following,
    ]


@pytest.mark.parametrize("new", [Cron("0 * * * *"), FixedRate(HOUR)])
@pytest.mark.parametrize("between", [Cron("0 * * * *"), Cron("0 5 * * *"), FixedRate(5 * HOUR)])
@pytest.mark.parametrize("fields", [{}, {"paused": True}, {"max_firings": 9}])
def test_what_was_delivered_before_two_replacements_that_clocks_put_in_another_order_is_not_delivered_again(
    new: Timing, between: Timing, fields: dict[str, Any]
) -> None:
    life = Life()
    life.schedule(Cron("0 * * * *"))
    life.run(M + HOUR)
    life.schedule(between, M + HOUR + 150, recorded_at=M + HOUR + 100, **fields)
    start = {"start": M} if isinstance(new, FixedRate) else {}
    life.schedule(new, M + HOUR + 200, recorded_at=M + HOUR - 100, **start)
    life.run(M + 2 * HOUR)
    assert life.dues == [M + HOUR, M + 2 * HOUR]


@pytest.mark.parametrize(
    ("old", "new", "recorded", "read", "due"),
    [
        (FixedRate(10 * SECOND), Cron("0 5 * * *"), 5 * HOUR - 5 * SECOND, 5 * HOUR + 15 * SECOND, None),
        (FixedRate(10 * SECOND), Cron("2 5 * * *"), 5 * HOUR, 5 * HOUR + 125 * SECOND, None),
        (Cron("*/5 * * * *"), Cron("2 5 * * *"), 5 * HOUR + MINUTE, 5 * HOUR + 6 * MINUTE, 5 * HOUR + 5 * MINUTE + 1),
        (Cron("*/5 * * * *"), Cron("*/2 * * * *"), 5 * HOUR + MINUTE, 5 * HOUR + 6 * MINUTE, 5 * HOUR + 6 * MINUTE),
    ],
)
def test_a_time_of_a_new_series_that_the_old_one_did_not_have_is_made_up_for_if_it_is_the_only_one(
    old: Timing, new: Timing, recorded: int, read: int, due: int | None
) -> None:
    life = Life()
    life.schedule(old)
    life.run(M + read)
    before = len(life.dues)
    life.schedule(new, M + read, recorded_at=M + recorded)
    life.run(M + read + 1)
    assert life.dues[before:] == ([] if due is None else [M + due])


def test_a_replacement_that_leaves_only_what_was_delivered_ends_the_series() -> None:
    life = Life()
    life.schedule(Cron("0 * * * *"))
    life.run(M + HOUR)
    decision = life.schedule(Cron("0 * * * *"), M + HOUR + 1, recorded_at=M + HOUR - 1, end=M + HOUR)
    assert (decision.outcome, life.entry) == (Outcome.UPDATED, None)
    assert decision.reason == "all its times are before the last firing of the schedule that it replaces"
    assert life.events == ["scheduled", "fired", "updated", "finished"]


def test_a_replacement_by_a_single_firing_of_a_time_that_was_delivered_is_delivered() -> None:
    life = Life()
    life.schedule(Cron("0 * * * *"))
    life.run(M + HOUR)
    life.schedule(Once(M + HOUR), M + HOUR + 1, recorded_at=M + HOUR - 1)
    life.run(M + HOUR + 1)
    assert life.dues == [M + HOUR, M + HOUR]


@given(
    st.sampled_from(
        [(FixedRate(MINUTE), {"start": M}), (Cron("* * * * *"), {}), (Cron("*/2 * * * *"), {"jitter": MINUTE})]
    ),
    st.lists(st.tuples(st.integers(0, 3 * MINUTE), st.integers(0, 2 * MINUTE)), min_size=1, max_size=5),
)
@settings(max_examples=tries(400))
def test_no_firing_of_a_series_comes_twice_however_often_and_late_it_is_replaced(
    series: tuple[Timing, dict[str, int]], steps: list[tuple[int, int]]
) -> None:
    life = Life()
    timing, bounds = series
    now = recorded = M
    life.schedule(timing, M, **bounds)
    for pause, late in steps:
        now += pause
        life.run(now)
        recorded = max(recorded, now - late)  # of one producer
        life.schedule(timing, now, recorded_at=recorded, **bounds)
    life.run(now + 10 * MINUTE)
    assert len(set(life.dues)) == len(life.dues)
