"""What schedules do where two things meet, such as a refusal and a misfire, or a trigger and a bound."""

from __future__ import annotations

import msgspec
import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Life

from light_scheduler.engine import FiringRules
from light_scheduler.engine.overlap import MOST_AWAITED
from light_scheduler.model import (
    LATEST_INSTANT,
    Backoff,
    Cron,
    Entry,
    EventType,
    FixedDelay,
    FixedRate,
    Misfire,
    Once,
    Outcome,
    Series,
    Timing,
)

M = MIDNIGHT
AGES = 3_652_500 * 24 * HOUR
"""A time-out of ten thousand years (ms)."""


def refusing(due: int, attempt: int) -> str | None:
    return "too large"


def accepting(due: int, attempt: int) -> str | None:
    return None


@pytest.mark.parametrize(("misfire", "left_out"), [("skip", 9), ("coalesce", 9)])
def test_a_firing_that_is_refused_after_missed_ones_is_the_one_that_is_tried_again(
    misfire: Misfire, left_out: int
) -> None:
    life = Life(FiringRules(retries=2))
    life.schedule(FixedRate(MINUTE), misfire=misfire, misfire_grace=45 * SECOND)
    life.refuse = refusing
    life.tick(M + 630 * SECOND)
    life.refuse = accepting
    life.tick(M + 660 * SECOND)
    assert [firing.due for firing in life.delivered] == [M + 600 * SECOND, M + 660 * SECOND]
    assert sum(told.stands_for for told in life.told if told.event == EventType.SKIPPED) == left_out


def test_a_firing_that_is_refused_for_good_after_missed_ones_is_the_one_that_is_set_aside() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), misfire="skip", misfire_grace=45 * SECOND)
    life.refuse = refusing
    life.tick(M + 630 * SECOND)
    life.tick(M + 660 * SECOND)
    assert life.dead[0][1] == M + 600 * SECOND


@pytest.mark.parametrize("timing", [Once(M + SECOND), FixedRate(10 * SECOND), FixedDelay(10 * SECOND)])
def test_a_firing_with_a_time_out_beyond_all_instants_waits_for_its_completion(timing: Timing) -> None:
    life = Life()
    life.schedule(timing, timeout=AGES)
    life.run(M + 11 * SECOND)
    (first,) = life.delivered
    assert life.entry is not None
    assert life.entry.progress.awaited[0].until == LATEST_INSTANT
    assert life.complete(first.due, M + 12 * SECOND) == Outcome.COMPLETED


def test_a_time_out_that_is_extended_beyond_all_instants_still_waits_for_the_completion() -> None:
    life = Life()
    life.schedule(Once(M + SECOND), timeout=MINUTE)
    life.run(M + SECOND)
    life.extend(M + SECOND, M + 2 * SECOND, timeout=AGES)
    assert life.complete(M + SECOND, M + 3 * SECOND) == Outcome.COMPLETED


def test_no_more_firings_are_asked_for_than_may_wait_for_their_completion() -> None:
    life = Life()
    life.schedule(FixedRate(24 * HOUR), timeout=7 * 24 * HOUR)
    outcomes = []
    for number in range(MOST_AWAITED + 1):
        outcomes.append(life.control("trigger", M + number).outcome)
        life.run(M + number)
    assert outcomes == [*[Outcome.TRIGGERED] * MOST_AWAITED, Outcome.CONFLICT]
    assert life.complete(life.delivered[0].due, M + HOUR) == Outcome.COMPLETED
    assert life.control("trigger", M + HOUR).outcome == Outcome.TRIGGERED


def test_a_series_is_triggered_no_more_often_than_its_maximum_of_firings_leaves() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), max_firings=2)
    outcomes = [life.control("trigger", M + number).outcome for number in range(3)]
    life.run(M + 5 * HOUR)
    assert outcomes == [Outcome.TRIGGERED, Outcome.TRIGGERED, Outcome.CONFLICT]
    assert [firing.sequence for firing in life.delivered] == [1, 2]


def test_a_firing_that_waits_for_the_one_before_it_leaves_no_room_for_one_that_is_asked_for() -> None:
    life = Life()
    life.schedule(FixedRate(10 * SECOND), max_firings=2, timeout=HOUR, overlap="queue")
    life.run(M + 20 * SECOND)
    assert life.control("trigger", M + 21 * SECOND).outcome == Outcome.CONFLICT
    life.complete(M + 10 * SECOND, M + 22 * SECOND)
    life.run(M + 23 * SECOND)
    assert [firing.due for firing in life.delivered] == [M + 10 * SECOND, M + 20 * SECOND]


@pytest.mark.parametrize(
    ("series", "fields"),
    [
        (FixedRate(24 * HOUR), {}),
        (FixedRate(24 * HOUR), {"timeout": HOUR}),
        (FixedRate(24 * HOUR), {"timeout": HOUR, "jitter": SECOND}),
        (FixedDelay(24 * HOUR), {}),
        (FixedDelay(24 * HOUR), {"timeout": HOUR}),
        (Backoff((24 * HOUR,)), {}),
    ],
)
def test_what_was_triggered_is_no_firing_of_a_series_that_is_moved_to_before_it(
    series: Series, fields: dict[str, int]
) -> None:
    life = Life()
    life.schedule(series, **fields)
    life.control("trigger", M + SECOND)
    life.run(M + SECOND)
    life.reschedule(Once(M - MINUTE), M + 5 * SECOND)
    life.run(M + 6 * SECOND)
    assert [firing.due for firing in life.delivered] == [M + SECOND, M - MINUTE]


def test_no_jitter_moves_a_firing_past_the_end() -> None:
    life = Life()
    life.schedule(FixedRate(1), jitter=5, end=M + 10)
    life.run(M + SECOND)
    assert life.entry is None
    assert max(firing.due for firing in life.delivered) <= M + 10


@pytest.mark.parametrize("extends", [False, True])
def test_a_refused_firing_is_tried_again_though_a_later_time_out_is_over_meanwhile(extends: bool) -> None:
    """It is due before the end of the time-out of the one before it, so it is what was refused."""
    life = Life()
    life.schedule(FixedRate(20 * SECOND), timeout=30 * SECOND, max_attempts=3, misfire="skip", misfire_grace=SECOND)
    life.run(M + 20 * SECOND)
    life.refuse = refusing
    life.run(M + 40 * SECOND)
    life.refuse = accepting
    if extends:
        life.extend(M + 20 * SECOND, M + 52 * SECOND, recorded_at=M + 45 * SECOND)
    else:
        life.complete(M + 20 * SECOND, M + 52 * SECOND)
    life.tick(M + 52 * SECOND)
    life.tick(M + 60 * SECOND)
    assert [firing.due for firing in life.delivered][:2] == [M + 20 * SECOND, M + 40 * SECOND]
    assert not [told for told in life.told if told.event == EventType.SKIPPED]


def test_an_old_firing_that_is_to_be_delivered_is_tried_again() -> None:
    life = Life(FiringRules(lookback_minutes=1, beyond="fire", retries=3))
    life.schedule(Once(M))
    life.refuse = refusing
    life.tick(M + 5 * MINUTE)
    life.refuse = accepting
    life.tick(M + 6 * MINUTE)
    assert [firing.due for firing in life.delivered] == [M]


def test_a_cron_series_moves_behind_what_it_has_delivered_and_not_behind_what_was_triggered() -> None:
    life = Life()
    life.schedule(Cron("0 * * * *"), timeout=HOUR)
    life.run(M + HOUR)
    life.control("trigger", M + HOUR + 30 * SECOND)
    life.run(M + HOUR + 30 * SECOND)
    life.reschedule(Cron("* * * * *"), M + HOUR + 31 * SECOND, recorded_at=M + HOUR - SECOND)
    assert life.entry is not None
    assert life.entry.progress.due == M + HOUR + MINUTE


def test_a_firing_that_is_asked_for_takes_the_place_of_the_last_planned_one_that_is_due_already() -> None:
    life = Life()
    life.schedule(FixedRate(MINUTE), max_firings=3)
    life.run(M + 2 * MINUTE)
    assert life.control("trigger", M + 3 * MINUTE + 50).outcome == Outcome.TRIGGERED
    life.tick(M + 3 * MINUTE + 50)
    assert [firing.sequence for firing in life.delivered] == [1, 2, 3]
    assert life.entry is None


def test_no_planned_firing_has_the_name_of_one_that_waits_for_its_completion() -> None:
    life = Life()
    life.schedule(FixedRate(24 * HOUR), timeout=HOUR)
    life.control("trigger", M + SECOND)
    life.run(M + SECOND)
    life.reschedule(Once(M + SECOND), M + 5 * SECOND)
    life.run(M + 6 * SECOND)
    assert life.dues == [M + SECOND, M + SECOND + 1]


@pytest.mark.parametrize("jitter", [0, 10 * SECOND])
def test_what_an_earlier_version_has_delivered_is_known_while_it_waits_for_its_completion(jitter: int) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), jitter=jitter, timeout=24 * HOUR)
    life.run(M + HOUR + jitter)
    assert life.entry is not None
    life.entry = Entry(life.entry.schedule, msgspec.structs.replace(life.entry.progress, delivered=0))
    life.reschedule(FixedRate(30 * MINUTE), M + HOUR + jitter + SECOND, recorded_at=M + HOUR - SECOND, start=M)
    assert life.entry.progress.due > life.dues[-1]


# -- what was refused, and what is next -------------------------------------------------------------------------------


def test_what_is_triggered_while_paused_and_refused_leaves_no_mark_on_what_was_missed_before_it() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), misfire="skip", misfire_grace=SECOND)
    life.control("pause", M + 1)
    life.refuse = refusing
    asked_at = M + 5 * MINUTE + 500
    life.control("trigger", asked_at)
    life.tick(asked_at)
    life.refuse = accepting
    life.control("resume", asked_at + 30 * SECOND)
    life.tick(asked_at + 30 * SECOND)
    life.run(M + 6 * MINUTE)
    assert life.dues == [asked_at, M + 6 * MINUTE]
    assert life.events[-3:] == ["skipped", "fired", "fired"]


def test_what_is_triggered_while_another_firing_waits_paused_has_retries_of_its_own() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE))
    life.refuse = refusing
    life.run(M + MINUTE)
    life.control("pause", M + MINUTE + 1)
    life.control("trigger", M + MINUTE + 2)
    life.tick(M + MINUTE + 2)
    assert life.events == ["scheduled", "retried", "paused", "updated", "retried"]


SERIES: list[Timing] = [FixedRate(HOUR), Cron("0 * * * *"), FixedDelay(HOUR), Backoff((HOUR, HOUR))]


@pytest.mark.parametrize("timing", [Once(M + HOUR), *SERIES])
@pytest.mark.parametrize("misfire", ["coalesce", "skip", "all"])
@pytest.mark.parametrize("paused_for", [SECOND, 9 * HOUR])
def test_a_refused_firing_has_no_more_retries_for_being_paused_and_ends_as_a_dead_letter(
    timing: Timing, misfire: str, paused_for: int
) -> None:
    life = Life(FiringRules(retries=2))
    life.schedule(timing, misfire=misfire)
    life.refuse = refusing
    now = M + HOUR
    life.turn(now)
    for _ in range(2):
        life.control("pause", now + 1)
        life.run(now + paused_for)
        life.control("resume", now + paused_for)
        assert life.entry is not None
        now = max(now + paused_for, life.entry.progress.wakes_at)
        life.turn(now)
    assert life.events[:8] == ["scheduled", *["retried", "paused", "resumed"] * 2, "dead_lettered"]
    assert life.dead == [("refused", M + HOUR)]


def test_a_refused_firing_that_is_paused_for_less_than_a_minute_waits_for_its_retry() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(Once(M + SECOND))
    life.refuse = refusing
    life.tick(M + SECOND)
    life.control("pause", M + 2 * SECOND)
    life.control("resume", M + 3 * SECOND)
    assert life.entry is not None
    assert life.entry.progress.wakes_at == M + MINUTE


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_refused_firing_is_tried_again_after_one_that_was_triggered_while_it_was_paused(is_refused: bool) -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(HOUR), misfire="skip")
    life.refuse = refusing
    life.tick(M + HOUR)
    life.control("pause", M + HOUR + 1)
    life.control("trigger", M + HOUR + 2)
    if not is_refused:
        life.refuse = accepting
    life.tick(M + HOUR + 2)
    life.refuse = accepting
    life.control("resume", M + 2 * HOUR - 1)
    life.tick(M + 2 * HOUR - 1)
    # If the triggered one was refused as well, nothing is known any more of what was refused before it.
    assert life.dues == [M + HOUR + 2, *[M + HOUR][is_refused:]]


def test_what_is_triggered_twice_while_paused_and_refused_once_leaves_no_mark_on_what_was_missed_before_it() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), misfire="skip", misfire_grace=SECOND)
    life.control("pause", M + 1)
    life.refuse = refusing
    asked_at = M + 5 * MINUTE + 500
    life.control("trigger", asked_at)
    life.tick(asked_at)
    life.refuse = accepting
    life.control("trigger", asked_at + 1)
    life.tick(asked_at + 1)
    life.control("resume", asked_at + 30 * SECOND)
    life.tick(asked_at + 30 * SECOND)
    assert life.dues == [asked_at, asked_at + 1]


def test_what_is_triggered_waits_for_nothing_that_was_refused_once_that_is_paused() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(HOUR))
    life.control("trigger", M + HOUR + 1)
    life.refuse = refusing
    life.turn(M + HOUR + 1)
    life.refuse = accepting
    life.control("pause", M + HOUR + 2)
    life.tick(M + HOUR + 2)
    assert life.dues == [M + HOUR + 1]


def test_a_triggered_firing_that_was_refused_keeps_its_count_if_nothing_is_ahead_of_it() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(HOUR))
    life.refuse = refusing
    life.control("trigger", M + 1)
    life.tick(M + 1)
    life.control("pause", M + 2)
    life.control("resume", M + 3)
    life.tick(M + MINUTE)
    assert life.dead == [("refused", M + 1)]


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_refused_attempt_that_is_reported_while_paused_counts_only_if_it_is_delivered_again(succeeded: bool) -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(HOUR), timeout=SECOND, max_attempts=5, misfire="skip")
    life.tick(M + HOUR)
    life.refuse = refusing
    life.tick(M + HOUR + SECOND)
    life.control("pause", M + HOUR + 2 * SECOND)
    assert life.complete(M + HOUR, M + HOUR + 3 * SECOND, succeeded=succeeded) == Outcome.COMPLETED
    life.control("resume", M + 2 * HOUR + MINUTE)
    life.tick(M + 2 * HOUR + MINUTE)
    last = ["skipped"] if succeeded else ["dead_lettered", "skipped"]
    assert life.events[-len(last) - 1 :] == ["resumed", *last]


def test_an_extension_of_a_refused_attempt_while_paused_ends_its_count() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(Once(M), timeout=SECOND, max_attempts=5)
    life.tick(M)
    life.refuse = refusing
    life.tick(M + SECOND)
    life.control("pause", M + SECOND + 1)
    assert life.extend(M, M + SECOND + 2, recorded_at=M + 1).outcome is Outcome.UPDATED
    assert life.entry is not None
    assert (life.entry.progress.refusals, life.entry.progress.retry_at) == (0, None)


def test_what_is_triggered_in_place_of_the_last_firing_has_retries_of_its_own() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), max_firings=1)
    life.refuse = refusing
    life.run(M + MINUTE)
    life.control("trigger", M + MINUTE + 2)
    life.tick(M + MINUTE + 2)
    assert life.events == ["scheduled", "retried", "updated", "retried"]


@pytest.mark.parametrize("timing", [FixedRate(MINUTE), Backoff((MINUTE, MINUTE)), FixedDelay(MINUTE), Once(M + MINUTE)])
def test_a_trigger_has_what_was_refused_tried_at_once_and_uses_up_no_retry(timing: Timing) -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(timing)
    life.refuse = refusing
    life.run(M + MINUTE)
    for seconds in (5, 6):
        life.control("trigger", M + MINUTE + seconds * SECOND)
        life.tick(M + MINUTE + seconds * SECOND)
    assert life.events == ["scheduled", "retried", "updated", "retried", "updated", "retried"]
    life.tick(M + 2 * MINUTE)
    assert life.events[6] == "dead_lettered"


def test_a_failure_that_is_reported_late_leaves_a_firing_its_place_and_its_retries() -> None:
    """Its next delivery was due before the firing behind it, and was refused."""
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), timeout=50 * SECOND, max_attempts=5)
    life.run(M + MINUTE)
    life.refuse = refusing
    life.run(M + 110 * SECOND)
    life.tick(M + 121 * SECOND)
    assert life.dead == [("refused", M + MINUTE)]
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(MINUTE), timeout=50 * SECOND, max_attempts=5)
    life.run(M + MINUTE)
    life.refuse = refusing
    life.run(M + 110 * SECOND)
    life.complete(M + MINUTE, M + 121 * SECOND, succeeded=False)
    life.tick(M + 121 * SECOND)
    assert life.dead == [("refused", M + MINUTE)]


def test_a_completion_leaves_another_firing_that_was_refused_its_wait() -> None:
    life = Life(FiringRules(retries=5))
    life.schedule(FixedRate(10 * SECOND), timeout=15 * SECOND, max_attempts=5, max_firings=2)
    life.run(M + 20 * SECOND)
    life.refuse = refusing
    life.run(M + 25 * SECOND)
    assert life.complete(M + 20 * SECOND, M + 40 * SECOND) == Outcome.COMPLETED
    assert life.entry is not None
    assert (life.entry.progress.refusals, life.entry.progress.wakes_at) == (1, M + MINUTE)


def test_a_firing_that_is_queued_behind_one_that_is_completed_does_not_wait_for_what_was_triggered_and_refused() -> (
    None
):
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(10 * SECOND), timeout=HOUR, overlap="queue")
    life.run(M + 20 * SECOND)
    life.refuse = refusing
    life.control("trigger", M + 21 * SECOND)
    life.tick(M + 21 * SECOND)
    life.refuse = accepting
    life.complete(M + 10 * SECOND, M + 22 * SECOND)
    life.tick(M + 22 * SECOND)
    assert life.dues == [M + 10 * SECOND, M + 20 * SECOND, M + 21 * SECOND]


@pytest.mark.parametrize("waits", [{"timeout": 25 * SECOND}, {"window": 50 * SECOND}])
def test_what_was_triggered_and_refused_stays_the_next_firing(waits: dict[str, int]) -> None:
    """Whatever else becomes due until it is tried again."""
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(10 * SECOND), max_firings=2, misfire="all", **waits)
    life.run(M + 10 * SECOND)
    life.refuse = refusing
    asked_at = M + 11 * SECOND
    life.control("trigger", asked_at)
    life.tick(asked_at)
    life.tick(M + MINUTE)
    assert ("refused", asked_at) in life.dead
    assert life.dead[0] == ("refused", asked_at)


@pytest.mark.parametrize("new", [Once(M + HOUR), Backoff((HOUR,))])
def test_what_becomes_a_schedule_that_fires_once_drops_what_was_asked_for_before(new: Timing) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR))
    life.refuse = refusing
    life.control("trigger", M + 1)
    life.tick(M + 1)
    life.refuse = accepting
    life.reschedule(new, M + 2)
    life.run(M + 2 * HOUR)
    assert [firing.due - M for firing in life.delivered] == [HOUR + (2 if isinstance(new, Backoff) else 0)]


def test_what_becomes_a_schedule_that_fires_once_drops_what_is_queued_and_waits_for_what_was_delivered() -> None:
    life = Life()
    life.schedule(FixedRate(10 * SECOND), timeout=HOUR, overlap="queue")
    life.run(M + 20 * SECOND)
    life.reschedule(Once(M + MINUTE), M + 21 * SECOND)
    assert life.complete(M + 10 * SECOND, M + 22 * SECOND) == Outcome.COMPLETED
    life.run(M + MINUTE)
    assert life.dues == [M + 10 * SECOND, M + MINUTE]


# -- queues -----------------------------------------------------------------------------------------------------------


def test_nothing_is_planned_behind_the_last_firing_that_is_queued() -> None:
    life = Life()
    life.schedule(FixedRate(10 * SECOND), max_firings=2, timeout=HOUR, overlap="queue")
    life.run(M + MINUTE)
    assert life.entry is not None
    assert (life.entry.progress.next_due, life.events) == (None, ["scheduled", "fired"])
    life.complete(M + 10 * SECOND, M + MINUTE)
    life.run(M + MINUTE)
    assert life.dues == [M + 10 * SECOND, M + 20 * SECOND]


def test_a_queued_firing_of_what_has_become_a_fixed_delay_is_its_next_run() -> None:
    life = Life()
    life.schedule(FixedRate(10 * SECOND), timeout=HOUR, overlap="queue")
    life.run(M + 20 * SECOND)
    life.reschedule(FixedDelay(SECOND), M + 21 * SECOND)
    life.complete(M + 10 * SECOND, M + 22 * SECOND)
    life.run(M + 30 * SECOND)
    life.complete(M + 20 * SECOND, M + 30 * SECOND)
    life.run(M + 40 * SECOND)
    assert life.dues == [M + 10 * SECOND, M + 20 * SECOND, M + 31 * SECOND]
