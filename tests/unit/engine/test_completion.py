from __future__ import annotations

from typing import Any

import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, SOURCE, Life

from light_scheduler.model import (
    Backoff,
    CompleteCommand,
    Cron,
    EventType,
    FixedDelay,
    FixedRate,
    Once,
    Outcome,
    Timing,
)

M = MIDNIGHT
KINDS: list[Timing] = [
    Once(M + HOUR),
    FixedRate(HOUR),
    Cron("0 * * * *"),
    FixedDelay(HOUR),
]


def delivered(timing: Timing, attempt: int = 1, **fields: Any) -> Life:
    """Return a schedule whose first firing, due at 1:00, was delivered some times and is awaited."""
    life = Life()
    life.schedule(timing, **{"timeout": MINUTE, "max_attempts": 5, **fields})
    for again in range(attempt):
        life.tick(M + HOUR + again * MINUTE)
    assert [firing.attempt for firing in life.delivered] == list(range(1, attempt + 1))
    return life


@pytest.mark.parametrize("timing", KINDS)
def test_a_completed_firing_does_not_come_again(timing: Timing) -> None:
    life = delivered(timing)
    assert life.complete(M + HOUR, M + HOUR + 1) is Outcome.COMPLETED
    life.run(M + 2 * HOUR - 1)
    assert len(life.delivered) == 1
    assert life.told[2].event is EventType.COMPLETED
    assert (life.told[2].due, life.told[2].attempt) == (M + HOUR, 1)
    assert (life.entry is None) == isinstance(timing, Once)


@pytest.mark.parametrize("timing", KINDS)
@pytest.mark.parametrize("succeeded", [True, False])
def test_a_late_answer_to_an_older_attempt_changes_nothing(timing: Timing, succeeded: bool) -> None:
    life = delivered(timing, attempt=3)
    for older in (1, 2):
        assert life.complete(M + HOUR, M + HOUR + 3 * MINUTE, older, succeeded=succeeded) is Outcome.CONFLICT
    assert life.complete(M + HOUR, M + HOUR + 3 * MINUTE, 4, succeeded=succeeded) is Outcome.CONFLICT
    assert life.complete(M + HOUR, M + HOUR + 3 * MINUTE, 3, succeeded=succeeded) is Outcome.COMPLETED


def test_a_completion_that_expects_its_version_is_none_of_a_replacement_that_has_the_same_firing_id() -> None:
    life = delivered(Once(M + HOUR))
    life.schedule(Once(M + HOUR), M + HOUR + 1, timeout=MINUTE)
    life.tick(M + HOUR + 1)
    at = M + HOUR + 2
    named = CompleteCommand(
        **SOURCE, firing_due=M + HOUR, attempt=1, succeeded=True, recorded_at=at, expected_version=1
    )
    assert life.send(named, at).outcome is Outcome.CONFLICT
    assert life.complete(M + HOUR, M + HOUR + 3) is Outcome.COMPLETED


@pytest.mark.parametrize("timing", KINDS)
def test_a_completion_of_what_does_not_wait_is_not_found(timing: Timing) -> None:
    life = delivered(timing)
    assert life.complete(M + HOUR + 1, M + HOUR + 2) is Outcome.NOT_FOUND
    life.complete(M + HOUR, M + HOUR + 2)
    assert life.complete(M + HOUR, M + HOUR + 3) is Outcome.NOT_FOUND


def test_a_completion_of_a_schedule_that_asks_for_none_is_not_found() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR))
    life.tick(M + HOUR)
    assert life.complete(M + HOUR, M + HOUR + 1) is Outcome.NOT_FOUND


def test_an_overtaken_attempt_of_a_backoff_series_is_a_conflict() -> None:
    life = Life()
    life.schedule(Backoff((SECOND, SECOND, SECOND)))
    life.run(M + 2 * SECOND)
    assert life.complete(M + SECOND, M + 2 * SECOND, 1) is Outcome.CONFLICT
    assert life.complete(M + 9 * SECOND, M + 2 * SECOND, 2) is Outcome.NOT_FOUND


@pytest.mark.parametrize("timing", [Once(M + HOUR), FixedRate(HOUR), Cron("0 * * * *")])
def test_a_failure_brings_the_next_attempt_at_once(timing: Timing) -> None:
    life = delivered(timing, max_attempts=2)
    assert life.complete(M + HOUR, M + HOUR + 5, succeeded=False) is Outcome.COMPLETED
    life.tick(M + HOUR + 5)
    assert [(f.at, f.attempt) for f in life.delivered] == [(M + HOUR, 1), (M + HOUR + 5, 2)]
    assert life.complete(M + HOUR, M + HOUR + 9, 2, succeeded=False) is Outcome.COMPLETED
    life.tick(M + HOUR + 9)
    assert life.dead == [("unacknowledged", M + HOUR)]


@pytest.mark.parametrize(("most", "redelivered"), [(1, False), (2, True)])
def test_a_failed_run_of_a_fixed_delay_is_the_end_of_it_unless_there_are_more_attempts(
    most: int, redelivered: bool
) -> None:
    life = delivered(FixedDelay(HOUR), max_attempts=most)
    life.complete(M + HOUR, M + HOUR + 5, succeeded=False)
    life.run(M + 2 * HOUR + 5 - SECOND if not redelivered else M + HOUR + 5)
    assert len(life.delivered) == 1 + redelivered
    if not redelivered:
        life.run(M + 2 * HOUR + 5)
        assert life.dues == [M + HOUR, M + 2 * HOUR + 5]


@pytest.mark.parametrize(
    ("recorded_at", "next_due"),
    [
        pytest.param(M + HOUR + 30, M + 2 * HOUR + 30, id="when the consumer sent it"),
        pytest.param(M + HOUR - 99, M + 2 * HOUR, id="but not before the firing"),
        pytest.param(M + 9 * HOUR, M + 2 * HOUR + 50, id="nor in the future"),
        pytest.param(-1, M + 2 * HOUR + 50, id="and now if there is no timestamp"),
    ],
)
def test_a_fixed_delay_counts_from_when_the_completion_was_recorded(recorded_at: int, next_due: int) -> None:
    life = delivered(FixedDelay(HOUR))
    life.complete(M + HOUR, M + HOUR + 50, recorded_at=recorded_at)
    assert life.entry is not None
    assert life.entry.progress.due == next_due


def test_each_of_several_firings_is_completed_by_itself() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, max_attempts=2, max_firings=3)
    life.run(M + 3 * HOUR)
    for hour in (2, 3):
        assert life.complete(M + hour * HOUR, M + 4 * HOUR) is Outcome.COMPLETED
    life.run(M + 30 * HOUR)
    assert [(f.due, f.attempt) for f in life.delivered[3:]] == [(M + HOUR, 2)]
    assert life.complete(M + HOUR, M + 30 * HOUR, 2) is Outcome.COMPLETED
    assert life.entry is None
    assert life.events[-2:] == ["completed", "finished"]


@pytest.mark.parametrize("timing", KINDS)
def test_a_paused_schedule_takes_completions(timing: Timing) -> None:
    life = delivered(timing)
    life.control("pause", M + HOUR + 1)
    assert life.complete(M + HOUR, M + HOUR + 2) is Outcome.COMPLETED
    life.control("resume", M + HOUR + 3)
    life.run(M + 2 * HOUR - 1)
    assert len(life.delivered) == 1


def test_a_completion_in_time_but_read_after_the_time_out_counts_if_the_firing_has_not_come_again() -> None:
    life = delivered(Once(M + HOUR))
    assert life.complete(M + HOUR, M + 9 * HOUR) is Outcome.COMPLETED
    assert life.entry is None


@pytest.mark.parametrize("waits", [{}, {"timeout": MINUTE, "max_attempts": 1}], ids=["by default", "asked for"])
def test_a_failure_of_a_fixed_delay_that_is_tried_once_begins_the_delay_and_is_no_dead_letter(
    waits: dict[str, int],
) -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR), **waits)
    life.tick(M + HOUR)
    assert life.complete(M + HOUR, M + HOUR + 5, succeeded=False) is Outcome.COMPLETED
    life.run(M + 2 * HOUR + 5)
    assert (life.dues, life.dead) == ([M + HOUR, M + 2 * HOUR + 5], [])


def test_what_a_target_refused_of_a_firing_is_not_in_the_way_of_the_next_once_it_is_completed() -> None:
    life = Life()
    life.schedule(FixedDelay(5 * SECOND), timeout=MINUTE, max_attempts=5)
    life.tick(M + 5 * SECOND)
    overdue = M + 5 * SECOND + MINUTE
    life.refuse = lambda due, attempt: "no such topic"
    life.tick(overdue)
    life.refuse = lambda due, attempt: None
    assert life.complete(M + 5 * SECOND, overdue + 1) is Outcome.COMPLETED
    life.run(overdue + MINUTE)
    assert [firing.at for firing in life.delivered][:2] == [M + 5 * SECOND, overdue + 1 + 5 * SECOND]
