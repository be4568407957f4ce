from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, Delivered, Life, Told
from support.tries import tries

from light_scheduler.engine import misfire
from light_scheduler.engine.progress import planned_at
from light_scheduler.engine.recurrence import next_of
from light_scheduler.model import Backoff, Cron, EventType, FixedDelay, FixedRate, Misfire, Once, Timing

DAY = 24 * HOUR
NOON = MIDNIGHT + 12 * HOUR
"""When the outage of three hours begins."""
BACK = NOON + 3 * HOUR + 20 * SECOND


def lived(timing: Timing, until: int = BACK + HOUR, **fields: Any) -> Life:
    """Run to just before noon, then not until the outage is over, then on."""
    life = Life()
    life.schedule(timing, **fields)
    life.run(NOON - 1)
    life.delivered.clear()
    life.told.clear()
    life.tick(BACK)
    life.run(until)
    return life


def clock(hour: int, minute: int = 0, second: int = 0) -> int:
    return MIDNIGHT + hour * HOUR + minute * MINUTE + second * SECOND


def minutes(first: int, last: int) -> list[tuple[int, int]]:
    """Return (at, due) of firings on time, by minutes of the day, last not included."""
    return [(MIDNIGHT + minute * MINUTE, MIDNIGHT + minute * MINUTE) for minute in range(first, last)]


# What is delivered, as (at, due), from noon on; and what is skipped, as (count, the first one's due).
# The worker is back at 15:00:20. With a grace of 30 s a firing of 15:00 is on time; of 14:59 and before, missed.
HOURLY, MINUTELY = ("0 * * * *", HOUR), ("* * * * *", MINUTE)
MISSED_HOURS = [(BACK, clock(hour)) for hour in (12, 13, 14)]
OUTAGE: list[tuple[tuple[str, int], Misfire, int, list[tuple[int, int]], tuple[int, int] | None]] = [
    (HOURLY, "coalesce", 30_000, [(BACK, clock(15)), (clock(16), clock(16))], (3, clock(12))),
    (HOURLY, "skip", 30_000, [(BACK, clock(15)), (clock(16), clock(16))], (3, clock(12))),
    (HOURLY, "all", 30_000, [*MISSED_HOURS, (BACK, clock(15)), (clock(16), clock(16))], None),
    (HOURLY, "coalesce", 10_000, [(BACK, clock(15)), (clock(16), clock(16))], (3, clock(12))),
    (HOURLY, "skip", 10_000, [(clock(16), clock(16))], (4, clock(12))),
    (HOURLY, "skip", 2 * HOUR, [(BACK, clock(14)), (BACK, clock(15)), (clock(16), clock(16))], (2, clock(12))),
    (HOURLY, "coalesce", 2 * HOUR, [(BACK, clock(14)), (BACK, clock(15)), (clock(16), clock(16))], (2, clock(12))),
    (HOURLY, "coalesce", 4 * HOUR, [*MISSED_HOURS, (BACK, clock(15)), (clock(16), clock(16))], None),
    (MINUTELY, "coalesce", 30_000, [(BACK, clock(15)), *minutes(901, 961)], (180, clock(12))),
    (MINUTELY, "skip", 30_000, [(BACK, clock(15)), *minutes(901, 961)], (180, clock(12))),
    (MINUTELY, "skip", 10_000, minutes(901, 961), (181, clock(12))),
    (MINUTELY, "skip", 90_000, [(BACK, clock(14, 59)), (BACK, clock(15)), *minutes(901, 961)], (179, clock(12))),
    (MINUTELY, "coalesce", 90_000, [(BACK, clock(14, 59)), (BACK, clock(15)), *minutes(901, 961)], (179, clock(12))),
    (MINUTELY, "coalesce", 10_000, [(BACK, clock(15)), *minutes(901, 961)], (180, clock(12))),
    (MINUTELY, "all", 0, [(BACK, clock(12) + n * MINUTE) for n in range(181)] + minutes(901, 961), None),
]


@pytest.mark.parametrize("kind", ["cron", "rate"])
@pytest.mark.parametrize(("rhythm", "policy", "grace", "expected", "skipped"), OUTAGE)
def test_after_an_outage_of_three_hours_each_policy_fires_what_the_table_says(
    kind: str,
    rhythm: tuple[str, int],
    policy: Misfire,
    grace: int,
    expected: list[tuple[int, int]],
    skipped: tuple[int, int] | None,
) -> None:
    expression, interval = rhythm
    timing = Cron(expression) if kind == "cron" else FixedRate(interval)
    life = lived(timing, misfire=policy, misfire_grace=grace)
    assert [(firing.at, firing.due) for firing in life.delivered if firing.at <= clock(16)] == expected
    told = [(line.stands_for, line.due) for line in life.told if line.event is EventType.SKIPPED]
    assert told == ([] if skipped is None else [skipped])
    sequences = [firing.sequence for firing in life.delivered]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))


@pytest.mark.parametrize("policy", ["coalesce", "skip", "all"])
def test_after_an_outage_a_single_firing_is_late_whatever_the_policy(policy: Misfire) -> None:
    life = lived(Once(clock(13)), misfire=policy, misfire_grace=0)
    assert life.delivered == [Delivered(BACK, clock(13), 1, 1)]
    assert lived(Once(clock(13))).delivered == life.delivered


@pytest.mark.parametrize("policy", ["coalesce", "skip", "all"])
def test_after_an_outage_a_fixed_delay_fires_once_and_counts_from_its_completion(policy: Misfire) -> None:
    life = Life()
    life.schedule(FixedDelay(HOUR), misfire=policy, misfire_grace=0)
    life.tick(MIDNIGHT + 5 * HOUR)
    life.complete(MIDNIGHT + HOUR, MIDNIGHT + 5 * HOUR + 7)
    life.run(MIDNIGHT + 6 * HOUR + 7)
    assert life.dues == [MIDNIGHT + HOUR, MIDNIGHT + 6 * HOUR + 7]


def test_after_an_outage_a_backoff_series_makes_one_attempt_and_waits_its_interval_again() -> None:
    life = Life()
    life.schedule(Backoff((SECOND,) * 5))
    life.tick(MIDNIGHT + HOUR)
    life.run(MIDNIGHT + 2 * HOUR)
    late = MIDNIGHT + HOUR
    assert [(firing.at, firing.due, firing.attempt) for firing in life.delivered] == [
        (late, MIDNIGHT + SECOND, 1),
        *[(late + n * SECOND, late + n * SECOND, n + 1) for n in (1, 2, 3, 4)],
    ]


@pytest.mark.parametrize(("late", "is_missed"), [(0, False), (29_999, False), (30_000, False), (30_001, True)])
def test_the_last_ms_of_the_grace_is_on_time(late: int, is_missed: bool) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), misfire="skip")
    life.tick(MIDNIGHT + HOUR + late)
    assert life.events[1:] == (["skipped"] if is_missed else ["fired"])


@pytest.mark.parametrize(
    ("policy", "dues"),
    [
        ("coalesce", [8, 9, 10]),
        ("skip", [8, 9, 10]),
        ("all", list(range(1, 11))),
    ],
)
def test_whatever_the_policy_a_firing_within_its_grace_is_not_missed(policy: Misfire, dues: list[int]) -> None:
    life = Life()
    life.schedule(FixedRate(SECOND), misfire=policy, misfire_grace=2_500)
    life.tick(MIDNIGHT + 10 * SECOND)
    assert life.dues == [MIDNIGHT + n * SECOND for n in dues]
    assert sum(line.stands_for for line in life.told if line.event is EventType.SKIPPED) == 10 - len(dues)


@settings(max_examples=tries(60))
@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 2_000_000))
def test_coalescing_delivers_all_that_skipping_does_and_one_for_the_rest_if_that_is_nothing(
    every: int, jitter: int, window: int, grace: int, outage: int
) -> None:
    spread = {"jitter": jitter * SECOND, "window": window * SECOND, "misfire_grace": grace * SECOND}
    delivered = {}
    for policy in ("skip", "coalesce"):
        life = Life()
        life.schedule(FixedRate(every * SECOND), misfire=policy, **spread)
        life.tick(MIDNIGHT + outage)
        life.run(MIDNIGHT + outage + 3 * HOUR // 60)
        delivered[policy] = life.dues
    first, *rest = [*delivered["coalesce"], None]
    assert delivered["skip"] in (delivered["coalesce"], [due for due in rest if due is not None])
    assert first is None or first <= min(delivered["skip"], default=first)


# -- what a lateness is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["coalesce", "skip", "all"])
@pytest.mark.parametrize(
    "spread", [{"jitter": 20 * MINUTE}, {"window": 20 * MINUTE}, {"jitter": 9_999, "window": HOUR}]
)
def test_jitter_and_window_are_no_lateness(policy: Misfire, spread: dict[str, int]) -> None:
    life = Life()
    life.schedule(FixedRate(2 * HOUR), misfire=policy, misfire_grace=0, max_firings=200, **spread)
    life.run(MIDNIGHT + 1_000 * HOUR)
    assert len(life.delivered) == 200
    assert "skipped" not in life.events


@settings(max_examples=tries(40))
@given(
    st.sampled_from(["coalesce", "skip"]),
    st.integers(3, 40),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 60),
    st.integers(0, 3_000),
    st.booleans(),
)
def test_every_occurrence_is_delivered_or_counted_as_skipped(
    policy: Misfire, every: int, jitter: int, window: int, grace: int, outage: int, is_cron: bool
) -> None:
    life, back = Life(), MIDNIGHT + HOUR // 4 + outage * SECOND
    timing = Cron("* * * * *") if is_cron else FixedRate(every * SECOND)
    bounds = {"jitter": jitter * SECOND, "window": window * SECOND, "misfire_grace": grace * SECOND}
    life.schedule(timing, misfire=policy, **bounds)
    life.run(MIDNIGHT + HOUR // 4)
    life.tick(back)
    life.run(back + HOUR // 4)
    assert life.entry is not None
    progress = life.entry.progress
    planned = progress.due if progress.planned is None else progress.planned
    step = MINUTE if is_cron else every * SECOND
    skipped = sum(line.stands_for for line in life.told if line.event is EventType.SKIPPED)
    assert len(life.delivered) + skipped == (planned - MIDNIGHT) // step - 1
    assert life.dues == sorted(set(life.dues))
    assert all(firing.at >= firing.due for firing in life.delivered)
    if policy == "skip":
        latest = (window + grace) * SECOND
        assert all(firing.at - firing.due <= latest for firing in life.delivered)


@pytest.mark.parametrize("policy", ["coalesce", "skip"])
def test_a_firing_that_was_refused_in_time_is_tried_again_and_not_taken_for_missed(policy: Misfire) -> None:
    life = Life()
    life.schedule(FixedRate(MINUTE), misfire=policy, misfire_grace=0)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.tick(MIDNIGHT + MINUTE)
    life.refuse = lambda due, attempt: None
    life.run(MIDNIGHT + 4 * MINUTE)
    assert life.dues == [MIDNIGHT + n * MINUTE for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("policy", ["coalesce", "skip"])
def test_a_firing_that_was_refused_in_time_and_is_tried_at_once_by_a_trigger_is_not_taken_for_missed(
    policy: Misfire,
) -> None:
    life = Life()
    life.schedule(FixedRate(HOUR), misfire=policy, misfire_grace=30 * SECOND)
    life.refuse = lambda due, attempt: "topic t does not exist"
    life.tick(MIDNIGHT + HOUR)
    life.refuse = lambda due, attempt: None
    asked_at = MIDNIGHT + HOUR + 40 * SECOND
    life.control("trigger", asked_at)
    life.run(asked_at)
    assert [(firing.due, firing.at) for firing in life.delivered] == [
        (MIDNIGHT + HOUR, asked_at),
        (asked_at, asked_at),
    ]


# -- huge outages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["coalesce", "skip"])
def test_centuries_of_a_fixed_rate_are_counted_exactly(policy: Misfire) -> None:
    life = Life()
    life.schedule(FixedRate(1), misfire=policy, misfire_grace=0)
    now = MIDNIGHT + 10**13
    life.turn(now)
    (skipped,) = (line for line in life.told if line.event is EventType.SKIPPED)
    assert skipped == Told(EventType.SKIPPED, MIDNIGHT + 1, 1, 1, 10**13 - 1)


CRONS = [
    (Cron("* * * * *"), 7 * DAY, 7 * 1_440),
    (Cron("* * * * *", "cron4j", "Europe/Berlin"), 365 * DAY, 365 * 1_440),
    (Cron("* * * * * *", "spring", "America/New_York"), 365 * DAY, 365 * 86_400),
    (Cron("*/5 1-3 * * *|*/10 2 * * *|7 12 * * *", "cron4j", "Europe/Berlin"), 365 * DAY, 365 * 37),
    (Cron("0 30 2 * * ?", "quartz", "Europe/Berlin"), 365 * DAY, 365),
    (Cron("* * * * * *", "spring"), 50 * 365 * DAY, 50 * 365 * 86_400),
]


@pytest.mark.parametrize("policy", ["coalesce", "skip"])
@pytest.mark.parametrize(("cron", "outage", "missed"), CRONS)
def test_missed_cron_firings_are_counted_exactly_however_many_there_are(
    policy: Misfire, cron: Cron, outage: int, missed: int
) -> None:
    life = Life()
    life.schedule(cron, misfire=policy, misfire_grace=0)
    assert life.entry is not None
    now = MIDNIGHT + outage + 1
    started = time.process_time()
    turn = life.turn(now)
    assert time.process_time() - started < 1, "going from one to the next takes many times as long"
    [skipped] = turn.skipped
    assert skipped.count == missed - (policy == "coalesce")
    assert skipped.reason == f"missed, and not delivered because of misfire policy {policy}"
    assert turn.steps < 150
    assert turn.entry is not None
    following = turn.entry.progress.due
    assert following == next_of(cron, now)
    if policy == "coalesce":
        assert next_of(cron, turn.subject.progress.due) == following


@settings(max_examples=tries(60))
@given(
    st.sampled_from(["coalesce", "skip"]),
    st.sampled_from(["* * * * *", "*/7 1-4 * * *", "30 2 * * *", "0,15,30,45 1,2,3 * * 0,6"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    st.integers(0, 100 * DAY),
    st.one_of(st.none(), st.integers(8 * DAY, 100 * DAY)),
)
def test_as_many_cron_firings_are_skipped_as_there_are(
    policy: Misfire, expression: str, zone: str, outage: int, ends_after: int | None
) -> None:
    life, cron, begin = Life(), Cron(expression, "unix", zone), MIDNIGHT + 60 * DAY
    now, end = begin + outage, None if ends_after is None else begin + ends_after
    life.schedule(cron, begin, misfire=policy, misfire_grace=0, end=end)
    missed, at = 0, begin
    while (following := next_of(cron, at)) is not None and following < now and (end is None or following <= end):
        missed, at = missed + 1, following
    if life.entry is not None:
        life.tick(now)
    skipped = sum(line.stands_for for line in life.told if line.event is EventType.SKIPPED)
    assert skipped + len(life.delivered) == missed + (following == now and (end is None or now <= end))
    assert len(life.delivered) <= 1


@pytest.mark.parametrize("trigger", [FixedRate(SECOND), Cron("* * * * * *", "spring")])
def test_with_more_than_enough_firings_within_the_jitter_the_count_is_exact_and_the_next_is_to_come(
    trigger: Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(misfire, "MOST_STEPS", 3)
    life = Life()
    life.schedule(trigger, misfire="skip", misfire_grace=0, jitter=HOUR)
    now = MIDNIGHT + 5 * HOUR
    turn = life.turn(now)
    assert [skipped.count for skipped in turn.skipped] == [5 * 3_600]
    assert turn.entry is not None
    assert planned_at(turn.entry.progress) == now + SECOND


def test_a_firing_of_every_ms_is_found_among_millions_within_its_jitter_before_the_bound() -> None:
    life = Life()
    life.schedule(FixedRate(1), misfire="skip", misfire_grace=0, jitter=HOUR)
    turn = life.turn(MIDNIGHT + 5 * HOUR)
    assert turn.steps < misfire.MOST_STEPS
    assert turn.entry is not None
    [skipped] = turn.skipped
    assert planned_at(turn.entry.progress) == MIDNIGHT + skipped.count + 1 < MIDNIGHT + 5 * HOUR


def test_an_outage_past_the_end_of_a_series_leaves_its_last_firing_or_none() -> None:
    for policy, dues in (("coalesce", [MIDNIGHT + 3 * HOUR]), ("skip", [])):
        for timing in (FixedRate(HOUR), Cron("0 * * * *")):
            life = Life()
            life.schedule(timing, misfire=policy, end=MIDNIGHT + 3 * HOUR)
            life.tick(MIDNIGHT + 30 * HOUR)
            assert life.dues == dues
            assert life.entry is None
            assert life.events[-1] == "finished"
            assert next(line.stands_for for line in life.told if line.event is EventType.SKIPPED) == 3 - len(dues)
