"""What becomes of a schedule that wakes: every way in which a turn can go, and how they meet."""

from __future__ import annotations

import pytest
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Delivered, Life, Told

from light_scheduler.engine import FiringRules
from light_scheduler.engine.overlap import MOST_AWAITED
from light_scheduler.model import NEVER, Backoff, Cron, EventType, FixedDelay, FixedRate, Once, Outcome, Timing

M = MIDNIGHT
SERIES = [FixedRate(HOUR), Cron("0 * * * *"), Backoff((HOUR,) * 9), FixedDelay(HOUR)]


def refuse(life: Life, reason: str | None = "topic t does not exist") -> None:
    life.refuse = lambda due, attempt: reason


# -- woken for nothing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", [Once(M + HOUR), *SERIES])
def test_a_schedule_that_is_not_due_does_nothing(timing: Timing) -> None:
    life = Life()
    life.schedule(timing)
    before = life.entry
    turn = life.turn(M + HOUR - 1)
    assert (turn.event, turn.entry, turn.skipped, turn.dead_letter) == (None, before, (), None)


@pytest.mark.parametrize("timing", [Once(M + HOUR), *SERIES])
def test_a_paused_schedule_does_not_wake_and_does_nothing_if_it_is_woken(timing: Timing) -> None:
    life = Life()
    life.schedule(timing, paused=True)
    assert life.entry is not None
    assert life.entry.progress.wakes_at == NEVER
    assert (life.turn(M + 9 * HOUR).event, life.events) == (None, ["scheduled"])


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", [Once(M + 7 * SECOND), FixedRate(7 * SECOND), Backoff((7 * SECOND, HOUR))])
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_refused_firing_is_tried_again_each_minute_and_then_a_dead_letter(timing: Timing, retries: int) -> None:
    life = Life(FiringRules(retries=retries))
    life.schedule(timing, misfire="all")
    refuse(life)
    woken = []
    while not life.dead:
        assert life.entry is not None
        woken.append(life.entry.progress.wakes_at)
        life.turn(woken[-1])
    assert woken == [M + 7 * SECOND, *[M + n * MINUTE for n in range(1, retries + 1)]]
    assert [line.event for line in life.told[1:] if line.event is not EventType.FINISHED] == [
        *[EventType.RETRIED] * retries,
        EventType.DEAD_LETTERED,
    ]
    assert life.dead == [("refused", M + 7 * SECOND)]
    assert {line.due for line in life.told} == {M + 7 * SECOND}


@pytest.mark.parametrize("timing", [Once(M + 7 * SECOND), *[FixedRate(7 * SECOND)]])
def test_a_refused_firing_is_delivered_as_itself_when_its_target_takes_it_again(timing: Timing) -> None:
    life = Life()
    life.schedule(timing, misfire="all")
    refuse(life)
    life.tick(M + 7 * SECOND)
    refuse(life, None)
    life.tick(M + MINUTE)
    assert life.delivered[0] == Delivered(M + MINUTE, M + 7 * SECOND, 1, 1)
    if isinstance(timing, FixedRate):  # those behind it follow in their order
        assert life.dues == [M + n * 7 * SECOND for n in range(1, 9)]


def test_after_a_dead_letter_a_series_goes_on_and_the_next_firing_has_all_its_retries() -> None:
    life = Life(FiringRules(retries=2))
    life.schedule(FixedRate(HOUR), max_firings=2)
    refuse(life)
    life.run(M + 3 * HOUR)
    assert life.events == ["scheduled", *["retried", "retried", "dead_lettered"] * 2, "finished"]
    assert [line.sequence for line in life.told[1:7]] == [1, 1, 1, 2, 2, 2]


def test_a_fixed_delay_goes_on_after_a_run_that_could_not_be_delivered() -> None:
    life = Life(FiringRules(retries=0))
    life.schedule(FixedDelay(HOUR))
    refuse(life)
    life.tick(M + HOUR + 9)
    refuse(life, None)
    life.run(M + 2 * HOUR + 9)
    assert life.dues == [M + 2 * HOUR + 9]


@pytest.mark.parametrize(("lookback", "retried"), [(0, False), (1, True), (None, True)])
def test_the_lookback_ends_the_retries(lookback: int | None, retried: bool) -> None:
    life = Life(FiringRules(lookback, retries=5))
    life.schedule(Once(M + SECOND))
    refuse(life)
    life.tick(M + SECOND)
    assert life.events[1] == ("retried" if retried else "dead_lettered")
    if lookback == 1:
        life.tick(M + MINUTE)
        assert life.events[2] == "dead_lettered"


def test_a_trigger_tries_again_what_was_set_aside() -> None:
    life = Life()
    life.schedule(Once(M + SECOND))
    refuse(life)
    life.tick(M + SECOND)
    refuse(life, None)
    life.control("trigger", M + 5 * SECOND)
    life.tick(M + 5 * SECOND)
    assert life.dues == [M + 5 * SECOND]
    assert life.entry is None


def test_what_was_triggered_while_paused_and_refused_waits_for_the_next_minute() -> None:
    life = Life(FiringRules(retries=1))
    life.schedule(FixedRate(HOUR), paused=True)
    life.control("trigger", M + SECOND)
    refuse(life)
    life.tick(M + SECOND)
    assert life.events[-1] == "retried"
    assert life.entry is not None
    assert life.entry.progress.wakes_at == M + MINUTE
    refuse(life, None)
    life.tick(M + MINUTE)
    assert life.dues == [M + SECOND]


# -- time to live and lookback ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", SERIES)
@pytest.mark.parametrize(("late", "event"), [(SECOND, "fired"), (SECOND + 1, "expired")])
def test_a_firing_of_a_series_past_its_time_to_live_is_not_delivered_and_the_series_goes_on(
    timing: Timing, late: int, event: str
) -> None:
    life = Life()
    life.schedule(timing, ttl=SECOND, misfire="all")
    life.tick(M + HOUR + late)
    assert life.events == ["scheduled", event]
    assert life.entry is not None
    assert not life.dead


@pytest.mark.parametrize("timing", SERIES)
def test_a_firing_of_a_series_before_the_lookback_is_a_dead_letter_and_the_series_goes_on(timing: Timing) -> None:
    life = Life(FiringRules(5))
    life.schedule(timing, misfire="all")
    life.tick(M + HOUR + 6 * MINUTE)
    assert life.events == ["scheduled", "missed"]
    assert life.dead == [("missed", M + HOUR)]
    assert life.entry is not None


def test_a_window_longer_than_the_lookback_is_no_miss() -> None:
    for number in range(20):
        life = Life(FiringRules(1), id=f"job-{number}")
        life.schedule(Once(M + HOUR), window=HOUR)
        life.run(M + 3 * HOUR)
        assert life.events == ["scheduled", "fired"]


def test_what_waited_for_another_run_is_not_missed_however_short_the_lookback() -> None:
    life = Life(FiringRules(0))
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="queue")
    life.run(M + 2 * HOUR)
    life.complete(M + HOUR, M + 2 * HOUR + 30 * MINUTE)
    life.tick(M + 2 * HOUR + 30 * MINUTE)
    assert life.dues == [M + HOUR, M + 2 * HOUR]
    assert not life.dead


# -- triggered --------------------------------------------------------------------------------------------------------


def test_a_triggered_single_firing_fires_in_place_of_its_time() -> None:
    life = Life()
    life.schedule(Once(M + HOUR))
    life.control("trigger", M + 5)
    life.run(M + 2 * HOUR)
    assert life.delivered == [Delivered(M + 5, M + 5, 1, 1)]
    assert life.entry is None


@pytest.mark.parametrize("between", [0, 1, 2])
@pytest.mark.parametrize("due", [M - HOUR, M + HOUR])
@pytest.mark.parametrize("waits", [{}, {"timeout": HOUR}])
def test_a_single_firing_that_is_triggered_three_times_is_delivered_once_whatever_the_batching(
    between: int, due: int, waits: dict[str, int]
) -> None:
    life = Life()
    life.schedule(Once(due), **waits)
    answers = []
    for number in range(3):
        answers.append(life.control("trigger", M + 5).outcome)
        if number < between:  # the cycle ends here
            life.tick(M + 5)
    life.run(M + 30 * MINUTE)
    assert life.delivered == [Delivered(M + 5, M + 5, 1, 1)]
    expected = Outcome.NOT_FOUND if between else Outcome.TRIGGERED
    assert answers == [Outcome.TRIGGERED, expected, expected]
    assert life.events.count("updated") == 1


def test_a_second_trigger_of_a_single_firing_tries_again_what_was_refused() -> None:
    life = Life()
    life.schedule(Once(M + HOUR))
    life.refuse = lambda due, attempt: "no"
    life.control("trigger", M + 5)
    life.tick(M + 5)
    life.refuse = lambda due, attempt: None
    assert life.control("trigger", M + 9).outcome is Outcome.TRIGGERED
    life.tick(M + 9)
    assert life.delivered == [Delivered(M + 9, M + 5, 1, 1)]
    assert life.entry is None


@pytest.mark.parametrize("timing", [FixedRate(HOUR), Cron("0 * * * *")])
@pytest.mark.parametrize("paused", [False, True])
def test_a_triggered_series_fires_besides_its_times(timing: Timing, paused: bool) -> None:
    life = Life()
    life.schedule(timing, paused=paused)
    life.control("trigger", M + 5)
    life.run(M + 2 * HOUR)
    assert life.dues == ([M + 5] if paused else [M + 5, M + HOUR, M + 2 * HOUR])
    assert [firing.sequence for firing in life.delivered] == list(range(1, len(life.dues) + 1))


def test_a_triggered_fixed_delay_series_keeps_its_delay() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR))
    life.control("trigger", M + 5)
    life.tick(M + 5)
    life.complete(M + 5, M + 9)
    life.run(M + HOUR)
    assert life.dues == [M + 5, M + HOUR]


def test_a_triggered_firing_of_a_backoff_series_is_no_attempt_and_may_complete_it() -> None:
    life = Life()
    life.schedule(Backoff((HOUR, HOUR, HOUR)))
    life.run(M + HOUR)
    life.control("trigger", M + HOUR + 5)
    life.run(M + 2 * HOUR)
    assert [(f.due, f.attempt) for f in life.delivered] == [(M + HOUR, 1), (M + HOUR + 5, 1), (M + 2 * HOUR, 2)]
    assert life.complete(M + HOUR + 5, M + 2 * HOUR + 1).value == "conflict"  # attempt 2 came after it
    assert life.complete(M + 2 * HOUR, M + 2 * HOUR + 1, 2).value == "completed"
    assert life.entry is None


def test_what_was_missed_comes_before_what_was_triggered_later() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), misfire="all")
    life.control("trigger", M + 3 * HOUR + MINUTE)
    life.tick(M + 3 * HOUR + MINUTE)
    assert life.dues == [M + HOUR, M + 2 * HOUR, M + 3 * HOUR, M + 3 * HOUR + MINUTE]


@pytest.mark.parametrize("timing", [FixedRate(HOUR), Cron("0 * * * *"), Backoff((HOUR, HOUR))])
def test_no_two_firings_have_the_same_due_time_even_if_they_are_asked_for_in_the_same_ms(timing: Timing) -> None:
    life = Life()
    life.schedule(timing)
    for _ in range(3):
        life.control("trigger", M + HOUR)
    life.run(M + 2 * HOUR)
    assert len(set(life.dues)) == len(life.dues) == 5
    life = Life()
    life.schedule(timing)
    life.tick(M + HOUR)
    life.control("trigger", M + HOUR)
    life.run(M + HOUR + MINUTE)
    if not isinstance(timing, Backoff):
        assert life.dues == [M + HOUR, M + HOUR + 1]


# -- waiting for a completion -----------------------------------------------------------------------------------------


def test_a_firing_that_nobody_completes_comes_again_and_is_a_dead_letter_after_its_attempts() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=3)
    life.run(M + 2 * HOUR)
    assert life.delivered == [Delivered(M + HOUR + n * MINUTE, M + HOUR, 1, n + 1) for n in range(3)]
    assert life.dead == [("unacknowledged", M + HOUR)]
    assert life.events == ["scheduled", "fired", "fired", "fired", "dead_lettered"]
    assert life.told[-1] == Told(EventType.DEAD_LETTERED, M + HOUR, 1, 3)
    assert life.entry is None


def test_the_visibility_time_out_counts_from_the_delivery() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + 5 * HOUR)
    assert life.entry is not None
    assert life.entry.progress.wakes_at == M + 5 * HOUR + MINUTE


def test_redelivery_waits_while_the_schedule_is_paused() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=2)
    life.tick(M + HOUR)
    life.control("pause", M + HOUR + 1)
    life.run(M + 9 * HOUR)
    assert len(life.delivered) == 1
    life.control("resume", M + 9 * HOUR)
    life.tick(M + 9 * HOUR)
    assert [firing.attempt for firing in life.delivered] == [1, 2]


def test_a_redelivery_that_is_refused_is_set_aside_and_counts_as_no_attempt() -> None:
    life = Life()
    life.schedule(Once(M + SECOND), timeout=SECOND, max_attempts=2)
    life.tick(M + SECOND)
    refuse(life)
    life.tick(M + 2 * SECOND)
    refuse(life, None)
    life.tick(M + MINUTE)
    assert [(f.at, f.attempt) for f in life.delivered] == [(M + SECOND, 1), (M + MINUTE, 2)]


def test_a_completion_ends_the_wait_for_a_refused_redelivery() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=SECOND, max_attempts=5)
    life.tick(M + HOUR)
    refuse(life)
    life.tick(M + HOUR + SECOND)
    assert life.complete(M + HOUR, M + HOUR + 2 * SECOND).value == "completed"
    assert life.entry is not None
    assert (life.entry.progress.wakes_at, life.entry.progress.refusals) == (M + 2 * HOUR, 0)


def test_a_firing_that_expires_before_it_comes_again_is_given_up_without_a_dead_letter() -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=MINUTE, max_attempts=9, ttl=90 * SECOND)
    life.run(M + 2 * HOUR)
    assert life.events == ["scheduled", "fired", "fired", "expired"]
    assert life.entry is None


@pytest.mark.parametrize("timing", [Once(M + HOUR), FixedRate(HOUR), FixedDelay(HOUR)])
def test_a_firing_whose_attempts_are_used_up_becomes_a_dead_letter_whatever_its_time_to_live(timing: Timing) -> None:
    life = Life()
    life.schedule(timing, timeout=MINUTE, max_attempts=2, ttl=90 * SECOND)
    life.run(M + HOUR + 2 * MINUTE)
    assert life.events[:4] == ["scheduled", "fired", "fired", "dead_lettered"]
    assert life.dead == [("unacknowledged", M + HOUR)]


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_failed_firing_past_its_time_to_live_is_a_dead_letter_only_if_it_was_its_last_attempt(attempts: int) -> None:
    life = Life()
    life.schedule(Once(M + HOUR), timeout=HOUR, max_attempts=attempts, ttl=SECOND)
    life.tick(M + HOUR)
    life.complete(M + HOUR, M + HOUR + MINUTE, succeeded=False)
    life.tick(M + HOUR + MINUTE)
    assert life.events[-1] == ("dead_lettered" if attempts == 1 else "expired")
    assert life.entry is None


@pytest.mark.parametrize(
    ("overlap", "dues", "events"),
    [
        ("allow", [1, 2, 3, 4], []),
        ("skip", [1, 4], ["skipped", "skipped"]),
        ("queue", [1, 2, 4], ["skipped"]),
    ],
)
def test_what_becomes_of_firings_that_are_due_while_one_is_not_completed(
    overlap: str, dues: list[int], events: list[str]
) -> None:
    """Firings at 1, 2, 3 and 4 o'clock; that of 1 is completed at 3:30, the others at once."""
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap=overlap)
    life.run(M + 3 * HOUR)
    half_past_three = M + 3 * HOUR + 30 * MINUTE
    for firing in list(life.delivered):
        life.complete(firing.due, half_past_three)
    life.tick(half_past_three)
    for firing in life.delivered:
        life.complete(firing.due, half_past_three + 1)
    life.run(M + 4 * HOUR)
    assert life.dues == [M + hour * HOUR for hour in dues]
    assert [event for event in life.events if event == "skipped"] == events
    assert [firing.sequence for firing in life.delivered] == list(range(1, len(dues) + 1))


@pytest.mark.parametrize("timing", [FixedRate(HOUR), FixedDelay(HOUR)])
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_trigger_fires_while_another_firing_is_not_completed_whatever_the_overlap_policy(
    timing: Timing, overlap: str
) -> None:
    life = Life()
    life.schedule(timing, timeout=24 * HOUR, overlap=overlap)
    life.tick(M + HOUR)
    life.control("trigger", M + HOUR + MINUTE)
    life.tick(M + HOUR + MINUTE)
    assert life.dues == [M + HOUR, M + HOUR + MINUTE]


@pytest.mark.parametrize("misfire", ["coalesce", "skip"])
def test_missed_firings_and_one_that_may_not_overlap_are_told_apart(misfire: str) -> None:
    """Firings at 1, 2, 3 and 4 o'clock; that of 1 is not completed, and no worker runs until 4."""
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="skip", misfire=misfire)
    life.tick(M + HOUR)
    turn = life.turn(M + 4 * HOUR)
    assert [(each.progress.due, each.count, each.reason) for each in turn.skipped] == [
        (M + 2 * HOUR, 2, f"missed, and not delivered because of misfire policy {misfire}"),
        (M + 4 * HOUR, 1, "the firing before it is not completed"),
    ]
    assert [tuple(line) for line in life.told[2:]] == [
        (EventType.SKIPPED, M + 2 * HOUR, 2, 1, 2),
        (EventType.SKIPPED, M + 4 * HOUR, 2, 1, 1),
    ]


def test_a_queued_firing_counts_towards_the_maximum_when_it_is_delivered() -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), timeout=24 * HOUR, overlap="queue", max_firings=2)
    life.run(M + 5 * HOUR)
    life.complete(M + HOUR, M + 5 * HOUR)
    life.tick(M + 5 * HOUR)
    life.complete(M + 2 * HOUR, M + 5 * HOUR + 1)
    assert life.dues == [M + HOUR, M + 2 * HOUR]
    assert life.entry is None
    assert life.events[-1] == "finished"


def test_a_consumer_that_never_completes_does_not_make_a_schedule_grow_for_ever() -> None:
    life = Life()
    life.schedule(FixedRate(SECOND), timeout=24 * HOUR)
    life.run(M + (MOST_AWAITED + 50) * SECOND)
    assert len(life.delivered) == MOST_AWAITED
    assert life.events.count("skipped") == 50
    assert life.entry is not None
    [skipped] = life.turn(life.entry.progress.wakes_at).skipped
    assert skipped.reason == "1000 firings before it are not completed"


# -- fixed delay ------------------------------------------------------------------------------------------------------


def test_a_fixed_delay_counts_from_the_completion_of_each_run() -> None:
    life = Life()
    life.schedule(FixedDelay(10 * MINUTE), start=M, timeout=HOUR, max_attempts=1)
    at = M
    for took in (0, 7 * MINUTE, 3, 4 * MINUTE):
        life.run(at)
        assert life.dues[-1] == at
        life.run(at + took)
        assert life.complete(at, at + took).value == "completed"
        at += took + 10 * MINUTE
    assert len(life.dues) == 4


@pytest.mark.parametrize("timeout", [None, 7 * MINUTE])
def test_a_run_that_is_not_completed_in_time_is_a_dead_letter_and_the_series_goes_on(timeout: int | None) -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR), start=M, **({} if timeout is None else {"timeout": timeout, "max_attempts": 1}))
    waits = timeout or 5 * MINUTE
    life.run(M + 2 * (HOUR + waits))
    assert life.dues == [M + n * (HOUR + waits) for n in range(3)]
    assert life.events == ["scheduled", *["fired", "dead_lettered"] * 2, "fired"]
    assert life.dead == [("unacknowledged", due) for due in life.dues[:2]]


def test_a_run_with_more_attempts_is_delivered_again_and_the_series_goes_on_after_the_dead_letter() -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR), start=M, timeout=MINUTE, max_attempts=2)
    life.run(M + HOUR + 2 * MINUTE)
    assert [(f.due, f.attempt) for f in life.delivered] == [(M, 1), (M, 2), (M + HOUR + 2 * MINUTE, 1)]
    assert life.dead == [("unacknowledged", M)]


def test_a_fixed_delay_does_not_fire_before_its_start_whatever_was_triggered() -> None:
    life = Life()
    life.schedule(FixedDelay(MINUTE), start=M + HOUR)
    life.control("trigger", M)
    life.tick(M)
    life.complete(M, M + 1)
    life.run(M + HOUR)
    assert life.dues == [M, M + HOUR]


# -- backoff ----------------------------------------------------------------------------------------------------------


def test_a_backoff_series_carries_its_attempt_and_the_first_due_time_and_stops_at_completion() -> None:
    life = Life()
    life.schedule(Backoff((SECOND, 2 * SECOND, 4 * SECOND, 16 * SECOND)))
    firsts = []
    for at in (M + SECOND, M + 3 * SECOND, M + 7 * SECOND):
        firsts.append(life.turn(at).subject.progress.first_due)
    assert firsts == [M + SECOND] * 3
    assert [(f.due, f.attempt, f.sequence) for f in life.delivered] == [
        (M + SECOND, 1, 1),
        (M + 3 * SECOND, 2, 2),
        (M + 7 * SECOND, 3, 3),
    ]
    assert life.complete(M + 7 * SECOND, M + 8 * SECOND, 3).value == "completed"
    assert life.entry is None
    assert life.events[-2:] == ["completed", "finished"]


def test_a_failure_leaves_a_backoff_series_its_intervals() -> None:
    life = Life()
    life.schedule(Backoff((SECOND, HOUR)))
    life.run(M + SECOND)
    assert life.complete(M + SECOND, M + 2 * SECOND, succeeded=False).value == "completed"
    life.run(M + 2 * HOUR)
    assert life.dues == [M + SECOND, M + HOUR + SECOND]
