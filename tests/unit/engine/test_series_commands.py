"""Commands for schedules that do more than fire once: pause, resume, trigger, reschedule, replace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, SOURCE, Life

from light_scheduler.engine import FiringRules
from light_scheduler.engine.commands import MOST_TRIGGERED
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
    for n in range(MOST_TRIGGERED):
        assert life.control("trigger", M + n).outcome is Outcome.TRIGGERED
    decision = life.control("trigger", M + MOST_TRIGGERED)
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
    assert progress(life) == progress(fresh)
    assert life.entry is not None
    assert fresh.entry is not None
    assert msgspec.structs.replace(life.entry.schedule, version=1) == fresh.entry.schedule
