"""How many times an expression has between two instants, against the times that are found one by one."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.engine.cron import CompiledCron, CronDialect, compile_cron

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
DAY = 24 * HOUR
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu",
    "Africa/Cairo", "America/Havana", "Africa/Casablanca", "Pacific/Apia", "Pacific/Kwajalein", "America/Scoresbysund",
    "Asia/Gaza", "America/Asuncion",
]  # fmt: skip
"""Zones whose clock is changed by an hour, by less and by a day, at night, at midnight and within a week."""


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def walked(cron: CompiledCron, after: int, until: int) -> int:
    """Count one by one."""
    number = 0
    while (following := cron.next_after(after)) is not None and following <= until:
        number += 1
        after = following
    return number


MOST = 800
"""Times that a test goes through, one by one."""


def cut(cron: CompiledCron, after: int, until: int) -> int:
    """Return an instant, or an earlier one with about as many times before it as a test goes through."""
    span = until - after
    while span > 0 and (number := cron.count_between(after, after + span)) > MOST:
        span = min(span * MOST // number, span - 1)
    return after + span


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """A field of plain values, or a wildcard, a range or a step."""
    plain = st.lists(st.integers(low, high), min_size=1, max_size=4).map(lambda each: ",".join(map(str, each)))
    ranges = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda each: f"{min(each)}-{max(each)}")
    return st.one_of(plain, plain, st.just("*"), ranges, st.integers(2, 7).map(lambda step: f"*/{step}"))


def unless(usual: str, other: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(usual), st.just(usual), other)


MINUTES_AND_HOURS = st.tuples(field(0, 59), field(0, 23)).map(" ".join)
DATES = st.tuples(unless("*", field(1, 28)), unless("*", field(1, 12))).map(" ".join)
FIVE_FIELDS = st.tuples(MINUTES_AND_HOURS, DATES, unless("*", field(0, 6))).map(" ".join)
SIX_FIELDS = st.tuples(field(0, 59), FIVE_FIELDS).map(" ".join)
QUARTZ_DAYS = st.sampled_from(
    ["* * ?", "L * ?", "LW * ?", "15W * ?", "? * 2#3", "? * 6L", "1-9/2 3,10 ?", "* * ? 2027"]
)
EXPRESSIONS: st.SearchStrategy[tuple[str, CronDialect]] = st.one_of(
    st.tuples(FIVE_FIELDS, st.just("unix")),
    st.tuples(SIX_FIELDS, st.just("spring")),
    st.tuples(st.tuples(field(0, 59), MINUTES_AND_HOURS, QUARTZ_DAYS).map(" ".join), st.just("quartz")),
    st.tuples(st.lists(FIVE_FIELDS, min_size=1, max_size=4).map("|".join), st.just("cron4j")),
)
SPANS = st.one_of(
    st.integers(0, 3 * HOUR),
    st.integers(0, 3 * DAY),
    st.integers(0, 90 * DAY),
    st.integers(0, 3 * 365 * DAY),
    st.integers(0, 60 * 365 * DAY),
)


@settings(max_examples=tries(400))
@given(EXPRESSIONS, st.sampled_from(ZONES), st.integers(ms("2024-01-01"), ms("2030-01-01")), SPANS)
@example(("0 0 * * *", "unix"), "UTC", ms("2026-01-01"), DAY)
@example(("30 1 * * *|30 1-1 * * *", "cron4j"), "Europe/Berlin", ms("2026-03-01"), 300 * DAY)
@example(("30 2 * * *|0 3-3 * * *", "cron4j"), "Europe/Berlin", ms("2026-03-01"), 300 * DAY)
@example(("0 12 * * *", "unix"), "Pacific/Apia", ms("2011-12-29"), 5 * DAY)
@example(("*/30 * * * *", "unix"), "Pacific/Kwajalein", ms("1969-09-25"), 10 * DAY)
@example(("0,30 3,9,12 * * *", "unix"), "Pacific/Kwajalein", ms("1969-09-25"), 10 * DAY)
def test_as_many_are_counted_as_there_are(
    expression: tuple[str, CronDialect], zone: str, after: int, span: int
) -> None:
    cron = compile_cron(*expression, zone)
    until = cut(cron, after, after + span)
    assert cron.count_between(after, until) == walked(cron, after, until)


@settings(max_examples=tries(200))
@given(
    EXPRESSIONS,
    st.sampled_from([
        ("Europe/Berlin", "2026-03-29T01:00"), ("Europe/Berlin", "2026-10-25T01:00"),
        ("America/Havana", "2026-03-08T05:00"), ("America/Havana", "2026-11-01T05:00"),
        ("Australia/Lord_Howe", "2026-04-04T15:00"), ("Australia/Lord_Howe", "2026-10-03T15:30"),
        ("America/St_Johns", "2010-11-07T02:31"), ("America/St_Johns", "2011-03-13T03:31"),
        ("Africa/Cairo", "2026-04-23T22:00"), ("Africa/Cairo", "2026-10-29T21:00"),
        ("Pacific/Apia", "2011-12-30T10:00"), ("Pacific/Kwajalein", "1969-09-30T13:00"),
    ]),
    st.integers(-100_000, 100_000),
    st.integers(0, 200_000),
)  # fmt: skip
def test_around_a_transition_as_many_are_counted_as_there_are(
    expression: tuple[str, CronDialect], transition: tuple[str, str], begin_s: int, span_s: int
) -> None:
    zone, at = transition
    cron, after = compile_cron(*expression, zone), ms(at) + begin_s * SECOND
    for until in (after + span_s * SECOND, ms(at) - 1, ms(at)):
        last = cut(cron, after, until)
        assert cron.count_between(after, last) == walked(cron, after, last)


def test_in_every_zone_a_transition_of_which_one_would_miss_none() -> None:
    for number, expression in enumerate(("10 0-23/6 * * *", "30 0,2,23 * * *")):
        for zone in ZONES:
            cron, after = compile_cron(expression, "unix", zone), ms("2009-01-01") + number * 17 * MINUTE
            until = after + 1_100 * DAY
            assert cron.count_between(after, until) == walked(cron, after, until), zone


@pytest.mark.parametrize(
    ("after", "until", "number"),
    [(-1, 0, 1), (0, 0, 0), (0, 1_000, 1), (0, 999, 0), (1, 1_000, 1), (999, 2_001, 2), (5_000, 1_000, 0)],
)
def test_the_first_instant_is_left_out_and_the_last_one_counts(after: int, until: int, number: int) -> None:
    assert compile_cron("* * * * * *", "spring").count_between(after, until) == number


def test_times_end_with_the_year_9999() -> None:
    cron = compile_cron("0 0 * * *", "unix", "Asia/Tokyo")
    after = ms("9999-12-20")
    assert cron.count_between(after, 10**15) == walked(cron, after, 10**15) == 11
    last = ms("9999-12-31T23:59:59")
    assert cron.count_between(last - HOUR, last) == 0, "there it is the year 10000 already"
    assert compile_cron("0 0 31 2 *").count_between(0, ms("2100-01-01")) == 0


@pytest.mark.parametrize(
    ("expression", "dialect", "years"),
    [
        ("* * * * * *", "spring", 1),
        ("*/7 * * * * ?", "quartz", 50),
        ("|".join(f"{n} * {n % 28 + 1} * *" for n in range(60)), "cron4j", 10),
    ],
)
def test_years_are_counted_at_once(expression: str, dialect: CronDialect, years: int) -> None:
    cron = compile_cron(expression, dialect, "America/New_York")
    after = ms("2026-01-01")
    started = time.process_time()
    number = cron.count_between(after, after + years * 365 * DAY)
    assert time.process_time() - started < 1, "going from one to the next takes many times as long"
    assert number > 365
    if expression == "* * * * * *":
        assert number == 365 * 86_400


@pytest.mark.parametrize("zone", ZONES)
def test_decades_have_as_many_as_their_weeks(zone: str) -> None:
    expression = "*/7 1-3 * * *|30 2 5,29,31 * *|0 0 29 2 *|0 12 L 1-6 2-4"
    begin, end = ms("1968-02-03T04:05"), ms("2027-08-09T10:11")
    decades, weeks = (compile_cron(expression + more, "cron4j", zone) for more in ("", " "))
    edges = [*range(begin, end, 7 * DAY), end]
    assert decades.count_between(begin, end) == sum(weeks.count_between(*each) for each in pairwise(edges))
