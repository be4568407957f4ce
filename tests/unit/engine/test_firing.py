from __future__ import annotations

import copy
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, Life

from light_scheduler.engine import FiringRules, take_turn
from light_scheduler.model import (
    FIRE_PAST,
    DeadLetterCause,
    Entry,
    EventType,
    FixedRate,
    Once,
    Progress,
    Schedule,
    Target,
)

MINUTE = 60_000
START_OF_MINUTE = 29_453_760 * MINUTE
EVER = FiringRules()
ONCE = FiringRules(retries=0)


def entry(due: int = START_OF_MINUTE, ttl: int | None = None) -> Entry:
    return Entry(Schedule("acme", "a", 1, Once(due), Target("t"), b"x", [], 0, 7, due, ttl), Progress(due, 7))


def events(due: int, now: int, lookback: int | None, beyond: Literal["fire", "dead-letter"]) -> EventType | None:
    return take_turn(entry(due), now, FiringRules(lookback, beyond)).event


@pytest.mark.parametrize(
    ("ttl", "late", "is_delivered"),
    [(None, 10**12, True), (1_000, 0, True), (1_000, 1_000, True), (1_000, 1_001, False), (0, 0, True), (0, 1, False)],
)
def test_a_firing_is_delivered_up_to_the_last_ms_of_its_time_to_live(
    ttl: int | None, late: int, is_delivered: bool
) -> None:
    decision = take_turn(entry(ttl=ttl), START_OF_MINUTE + late, EVER)
    if is_delivered:
        assert decision.delivers
        assert (decision.entry, decision.reason, decision.dead_letter) == (None, None, None)
    else:
        assert (decision.event, decision.dead_letter, decision.delivers) == (EventType.EXPIRED, None, False)
        assert decision.reason == f"{late} ms after due; its time to live was {ttl} ms"


LAST_MS = MINUTE - 1


@pytest.mark.parametrize(
    ("lookback", "late", "is_reached"),
    [
        pytest.param(0, 0, True, id="the current minute"),
        pytest.param(0, LAST_MS, True, id="the current minute, its last ms"),
        pytest.param(0, MINUTE, False, id="the minute before, without lookback"),
        pytest.param(1, MINUTE, True, id="one minute back"),
        pytest.param(1, MINUTE + LAST_MS, True, id="one minute back, from the last ms"),
        pytest.param(1, 2 * MINUTE, False, id="two minutes back, with a lookback of one"),
        pytest.param(60, 60 * MINUTE + LAST_MS, True, id="an hour back"),
        pytest.param(60, 61 * MINUTE, False, id="past the hour"),
        pytest.param(None, 10**12, True, id="all the way"),
    ],
)
def test_the_lookback_counts_whole_minutes(lookback: int | None, late: int, is_reached: bool) -> None:
    now = START_OF_MINUTE + late
    expected = EventType.FIRED if is_reached else EventType.MISSED
    assert events(START_OF_MINUTE, now, lookback, "dead-letter") is expected
    assert events(START_OF_MINUTE, now, lookback, "fire") is EventType.FIRED


@pytest.mark.parametrize(
    ("on_past", "late", "event"),
    [
        pytest.param(FIRE_PAST, 1, EventType.FIRED, id="the sender said so"),
        pytest.param(None, 1, EventType.MISSED, id="the default is for what the lookback reaches"),
        pytest.param(10**12, 1, EventType.MISSED, id="a grace is for the command"),
        pytest.param(FIRE_PAST, 0, EventType.MISSED, id="it was not past when it was recorded"),
        pytest.param(FIRE_PAST, -HOUR, EventType.MISSED, id="it was to come when it was recorded"),
    ],
)
def test_the_explicit_word_of_the_sender_beats_the_lookback(on_past: int | None, late: int, event: EventType) -> None:
    life = Life(FiringRules(1))
    life.schedule(Once(MIDNIGHT), MIDNIGHT + late, on_past=on_past)
    life.tick(MIDNIGHT + 9 * HOUR)
    assert life.events == ["scheduled", event.value]
    life = Life(FiringRules(1))
    life.schedule(FixedRate(24 * HOUR), MIDNIGHT)
    life.reschedule(Once(MIDNIGHT), MIDNIGHT + late, on_past=on_past)
    life.tick(MIDNIGHT + 9 * HOUR)
    assert life.events == ["scheduled", "updated", event.value]


def test_what_is_delivered_on_its_senders_word_is_tried_again_like_the_rest() -> None:
    life = Life(FiringRules(0, retries=2))
    life.schedule(Once(MIDNIGHT), MIDNIGHT + 9 * HOUR, on_past=FIRE_PAST)
    life.refuse = lambda due, attempt: "no"
    life.tick(MIDNIGHT + 9 * HOUR)
    assert life.dead == [("refused", MIDNIGHT)]
    life = Life(FiringRules(1, retries=2))
    life.schedule(Once(MIDNIGHT), MIDNIGHT + 9 * HOUR, on_past=FIRE_PAST)
    life.refuse = lambda due, attempt: "no"
    life.run(MIDNIGHT + 10 * HOUR)
    assert life.events == ["scheduled", "retried", "retried", "dead_lettered"]


def test_without_lookback_the_last_ms_of_a_minute_is_missed_one_ms_later() -> None:
    due = START_OF_MINUTE + LAST_MS
    assert events(due, due, 0, "dead-letter") is EventType.FIRED
    assert events(due, due + 1, 0, "dead-letter") is EventType.MISSED


def test_a_clock_that_was_set_back_misses_nothing_and_fires_nothing_early() -> None:
    turn = take_turn(entry(), START_OF_MINUTE - 10 * MINUTE, FiringRules(0))
    assert (turn.event, turn.entry) == (None, entry())


def test_a_missed_firing_goes_to_the_dead_letters_with_the_reason() -> None:
    turn = take_turn(entry(), START_OF_MINUTE + 2 * MINUTE, FiringRules(1))
    assert (turn.event, turn.dead_letter) == (EventType.MISSED, DeadLetterCause.MISSED)
    assert turn.reason == "due 120000 ms ago, before the lookback of 1 minutes"


def test_a_firing_that_is_not_tried_again_goes_to_the_dead_letters_with_the_refusal() -> None:
    turn = take_turn(entry(), START_OF_MINUTE, ONCE, "topic t does not exist")
    assert (turn.event, turn.dead_letter, turn.entry) == (EventType.DEAD_LETTERED, DeadLetterCause.REFUSED, None)
    assert turn.reason == "topic t does not exist"


@pytest.mark.parametrize(
    ("ttl", "lookback", "refusal", "event"),
    [
        (1_000, 0, "refused", EventType.EXPIRED),
        (1_000, 0, None, EventType.EXPIRED),
        (1_000, None, "refused", EventType.EXPIRED),
        (None, 0, "refused", EventType.MISSED),
        (None, None, "refused", EventType.DEAD_LETTERED),
        (None, None, None, EventType.FIRED),
    ],
)
def test_expired_comes_before_missed_and_missed_before_refused(
    ttl: int | None, lookback: int | None, refusal: str | None, event: EventType
) -> None:
    now = START_OF_MINUTE + 5 * MINUTE
    assert take_turn(entry(ttl=ttl), now, FiringRules(lookback, retries=0), refusal).event is event


@given(
    st.integers(0, 10**13),
    st.integers(0, 10**9),
    st.none() | st.integers(0, 10**9),
    st.none() | st.integers(0, 100),
    st.sampled_from(["fire", "dead-letter"]),
    st.none() | st.text(min_size=1, max_size=4),
)
def test_every_firing_is_delivered_or_recorded_with_a_reason(
    due: int,
    late: int,
    ttl: int | None,
    lookback: int | None,
    beyond: Literal["fire", "dead-letter"],
    refusal: str | None,
) -> None:
    pending = entry(due, ttl)
    before = copy.deepcopy(pending)
    decision = take_turn(pending, due + late, FiringRules(lookback, beyond, retries=0), refusal)
    assert decision.delivers == (decision.reason is None)
    # Only what nobody wants any more goes without a dead letter.
    assert (decision.dead_letter is None) == (decision.event in (EventType.FIRED, EventType.EXPIRED))
    assert pending == before
