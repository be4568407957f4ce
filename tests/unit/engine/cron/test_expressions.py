"""What an expression may say, dialect by dialect, and what is said about one that is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.cron import CronDialect, CronError, compile_cron, days, quartz, spring
from light_scheduler.engine.cron.rule import ALL_YEARS
from light_scheduler.model import LATEST_INSTANT

START = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)


def times(expression: str, dialect: CronDialect, count: int, start: int = START) -> list[str]:
    """Return the next times in UTC."""
    cron = compile_cron(expression, dialect)
    found: list[str] = []
    at: int | None = start
    while at is not None and len(found) < count:
        at = cron.next_after(at)
        if at is not None:
            found.append(datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("expression", "dialect", "expected"),
    [
        ("0 0 13 * 5", "unix", ["2025-01-03 00:00:00", "2025-01-10 00:00:00", "2025-01-13 00:00:00"]),
        ("0 0 13 * 5", "cron4j", ["2025-06-13 00:00:00", "2026-02-13 00:00:00", "2026-03-13 00:00:00"]),
        ("0 5 * * *|8 10 * * *", "cron4j", ["2025-01-01 05:00:00", "2025-01-01 10:08:00", "2025-01-02 05:00:00"]),
        ("0 0 L * *", "cron4j", ["2025-01-31 00:00:00", "2025-02-28 00:00:00", "2025-03-31 00:00:00"]),
        ("0 0 12 ? * 2#1", "quartz", ["2025-01-06 12:00:00", "2025-02-03 12:00:00", "2025-03-03 12:00:00"]),
        ("0 0 12 * * 2#1", "spring", ["2025-01-07 12:00:00", "2025-02-04 12:00:00", "2025-03-04 12:00:00"]),
        ("0 0 12 1W * ?", "quartz", ["2025-01-01 12:00:00", "2025-02-03 12:00:00", "2025-03-03 12:00:00"]),
        ("0 0 12 LW * ?", "quartz", ["2025-01-31 12:00:00", "2025-02-28 12:00:00", "2025-03-31 12:00:00"]),
        ("0 0 12 L-3 * *", "spring", ["2025-01-28 12:00:00", "2025-02-25 12:00:00", "2025-03-28 12:00:00"]),
        ("0 0 12 ? * 6L", "quartz", ["2025-01-31 12:00:00", "2025-02-28 12:00:00", "2025-03-28 12:00:00"]),
        ("0 0 12 * * FRIL", "spring", ["2025-01-31 12:00:00", "2025-02-28 12:00:00", "2025-03-28 12:00:00"]),
        ("0 0 0 1 1 ? 2027-2028", "quartz", ["2027-01-01 00:00:00", "2028-01-01 00:00:00"]),
        ("0 0 0 1 1 ? 2025-2027/2,2026/999999999", "quartz", ["2026-01-01 00:00:00", "2027-01-01 00:00:00"]),
        ("0 0 0 29 2 ? 2025-2096/3", "quartz", ["2028-02-29 00:00:00", "2040-02-29 00:00:00", "2052-02-29 00:00:00"]),
        ("0 0 0 ? 2 6#5", "quartz", ["2036-02-29 00:00:00", "2064-02-29 00:00:00", "2092-02-29 00:00:00"]),
        ("0 0 1 1 * 30 2027", "unix", ["2027-01-01 00:00:30"]),
        ("@hourly", "unix", ["2025-01-01 01:00:00", "2025-01-01 02:00:00", "2025-01-01 03:00:00"]),
        ("@Weekly", "spring", ["2025-01-05 00:00:00", "2025-01-12 00:00:00", "2025-01-19 00:00:00"]),
    ],
)
def test_an_expression_means_what_it_means_in_its_dialect(
    expression: str, dialect: CronDialect, expected: list[str]
) -> None:
    assert times(expression, dialect, 3) == expected


@pytest.mark.parametrize(
    ("dialect", "plain", "with_line_ends"),
    [
        ("unix", "0 9 * * 1", "\n0 9\n*  * 1\r\n"),
        ("quartz", "0 0 9 ? * MON", "\n0 0 9\r ?  *\tMON\r\n"),
        ("quartz", "0 0 9 15W * ? 2027", "0 0 9 15W\n * ? 2027\n"),
        ("spring", "0 0 9 * * MON", "\t0 0 9\t *\r  * MON\r\n"),
        ("spring", "0 0 9 * * MON", "0 0 9 * \n * MON \n"),
        ("spring", "@weekly", "@weekly\n"),
    ],
)
def test_line_ends_around_fields_mean_nothing_where_the_original_ignores_them(
    dialect: CronDialect, plain: str, with_line_ends: str
) -> None:
    assert times(with_line_ends, dialect, 3) == times(plain, dialect, 3)


@pytest.mark.parametrize(
    ("expression", "dialect", "position", "problem"),
    [
        ("* * * *", "unix", 7, "4 fields, not 5 to 7"),
        ("0 0 12 * *", "quartz", 10, "5 fields, not 6 to 7"),
        ("* * * * * * *", "spring", 12, "7 fields, not 6"),
        ("0 5 * * * | 0 5 * *", "cron4j", 19, "4 fields, not 5"),
        ("0 25 * * *", "unix", 2, "hour 25 is not in 0-23"),
        ("0 1,2,25 * * *", "unix", 6, "hour 25 is not in 0-23"),
        ("0 9-25 * * *", "unix", 4, "hour 25 is not in 0-23"),
        ("0 */x * * *", "unix", 4, "the hour step cannot be 'x'"),
        ("*/0 * * * *", "cron4j", 2, "minute step 0 is not positive"),
        ("*/61 * * * *", "unix", 2, "minute step 61 is over 59"),
        ("0 20-4 * * *", "unix", 2, "hour range 20-4 ends before it begins"),
        ("0 1,,2 * * *", "unix", 4, "a value is missing"),
        ("0 0 * FOO *", "unix", 6, "the month value cannot be 'FOO'"),
        ("0 0 L * *", "unix", 4, "the day of month value cannot be 'L'"),
        ("0 0 12 1 * 2", "quartz", 11, "exactly one of day of month and day of week must be ?"),
        ("0 0 12 L-31 * ?", "quartz", 9, "31 days before the last is more than 30"),
        ("0 0 12 ? * 2#6", "quartz", 13, "a number from 1 to 5"),
        ("0 0 12 ? * MON-6", "quartz", 11, "mixes a name and a number"),
        ("0 0 12 ? * 6L,", "quartz", 11, "6L cannot be in a list"),
        ("0 0 12 ? * ,FRIL", "quartz", 12, "FRIL cannot be in a list"),
        ("0 0 0 1 1 ? 2030-2027", "quartz", 12, "ends before it begins"),
        ("0 0 12 32W * *", "spring", 7, "day of month 32 is not in 1-31"),
        ("0 0 12 * * 1#0", "spring", 13, "is not positive"),
        ("0 \t0 \n25 * * *", "spring", 6, "hour 25 is not in 0-23"),
        ("0 0\t9 * * *", "spring", 11, "5 fields, not 6"),
        ("0 0 \n25 * * ?", "quartz", 5, "hour 25 is not in 0-23"),
        ("0 0 9 * * \n ?", "quartz", 10, "exactly one of day of month and day of week must be ?"),
        ("0 0 9 * * ? \n", "quartz", 12, "a value is missing"),
        ("0 9 * * 1\n", "cron4j", 8, "the day of week value cannot be '1\\n'"),
        ("@fortnightly", "unix", 0, "@fortnightly is none of @annually"),
        ("|", "cron4j", 0, "it is empty"),
        ("", "unix", 0, "0 fields"),
    ],
)
def test_a_fault_is_named_with_its_place(expression: str, dialect: CronDialect, position: int, problem: str) -> None:
    with pytest.raises(CronError) as raised:
        compile_cron(expression, dialect)
    assert raised.value.field == "cron"
    assert raised.value.position == position
    assert str(raised.value).startswith(f"not a {dialect} cron expression: ")
    assert str(raised.value).endswith(f" (column {position + 1})")
    assert problem in str(raised.value)


@given(
    st.sampled_from(["unix", "cron4j", "quartz", "spring"]),
    st.lists(st.text(st.sampled_from("0123456789*/-,?LW#|+@JANFRIjan²"), max_size=6) | st.just("*"), max_size=8),
)
def test_any_text_is_an_expression_or_refused_with_a_place_in_it(dialect: CronDialect, fields: list[str]) -> None:
    expression = " ".join(fields)
    refused = None
    try:
        compile_cron(expression, dialect).next_after(START)
    except CronError as error:
        refused = error
    if refused is not None:
        assert refused.field == "cron"
        assert refused.position is not None
        assert 0 <= refused.position <= len(expression)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "localtime"])
def test_an_unknown_time_zone_is_refused_as_such(zone: str) -> None:
    with pytest.raises(CronError, match="is not an IANA time zone") as raised:
        compile_cron("0 0 * * *", "unix", zone)
    assert raised.value.field == "timezone"
    assert raised.value.position is None


def test_a_misspelt_time_zone_is_answered_with_the_nearest() -> None:
    with pytest.raises(CronError, match=r"is it Europe/Berlin\?"):
        compile_cron("0 0 * * *", "unix", "europe/berlin")


def test_an_expression_is_compiled_once() -> None:
    assert compile_cron("1 2 3 4 5", "unix", "UTC") is compile_cron("1 2 3 4 5", timezone="UTC")


@pytest.mark.parametrize(
    ("expression", "dialect"),
    [
        ("0 0 30 2 *", "unix"),
        ("0 0 31 4,6,9,11 *", "cron4j"),
        ("0 0 31 4 *|0 0 30 2 *", "cron4j"),
        ("0 0 0 29 2 ? 2025-2027", "quartz"),
        ("0 0 0 1 1 ? 2024", "quartz"),
        ("0 0 0 29 2 ? 1971/2", "quartz"),
        ("0 0 0 ? * 5#6", "spring"),
        ("0 0 1 1 * 30 1999", "unix"),
    ],
)
def test_what_never_fires_again_has_no_next_time(expression: str, dialect: CronDialect) -> None:
    assert compile_cron(expression, dialect).next_after(START) is None


def test_no_search_goes_through_years_that_never_have_the_day() -> None:
    (every_odd_year,) = quartz.parse("0 0 0 29 2 ? 1971/2")
    assert every_odd_year.years == 0
    (every_year,) = quartz.parse("0 0 0 28,29 2 ?")
    assert every_year.years == ALL_YEARS


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_there_is_no_time_after_the_year_9999(zone: str) -> None:
    assert compile_cron("* * * * *", "unix", zone).next_after(LATEST_INSTANT) is None
    at: int | None = LATEST_INSTANT - 100 * 24 * 3_600_000
    fired = 0
    while at is not None:
        assert at <= LATEST_INSTANT
        at = compile_cron("0 0 12 * * ?", "quartz", zone).next_after(at)
        fired += at is not None
    assert fired in (99, 100)


def test_times_are_whole_seconds_strictly_after_the_instant() -> None:
    cron = compile_cron("* * * * * ?", "quartz")
    assert cron.next_after(5_000) == 6_000
    assert cron.next_after(5_001) == 6_000
    assert cron.next_after(4_999) == 5_000
    assert cron.next_after(-1) == 0


@pytest.mark.parametrize(
    "expression",
    [
        *("* * * * * 15", "*/7 3 * * * */20", "0 0 1 1 * 0 2027", "30 4 1,15 * 5 10 2026-2028", "5 4 * * sun 1-59/13"),
        *("0 22 * * 1-5 0 */2", "0 0 29 2 * 59 2024/4", "23 0-20/2 * * * 7,8", "5 0 * 8 * 30 2030"),
    ],
)
def test_seconds_and_years_of_unix_are_those_of_croniter(expression: str) -> None:
    original = croniter(expression, datetime.fromtimestamp(START / 1000, UTC))
    expected = []
    for _ in range(20):
        try:
            expected.append(original.get_next(datetime).strftime("%Y-%m-%d %H:%M:%S"))
        except ValueError:
            break
    assert expected
    assert times(expression, "unix", 20)[: len(expected)] == expected


def test_a_minutely_expression_goes_on_minute_by_minute() -> None:
    cron = compile_cron("* * * * *", "unix", "America/New_York")
    at: int | None = START
    for _ in range(1_000):
        assert at is not None
        at = cron.next_after(at)
    assert at == START + 60_000_000


@pytest.mark.parametrize(
    ("dialect", "repeated", "once"),
    [
        ("spring", [f"{1 + number % 31}W" for number in range(300)], [f"{number}W" for number in range(1, 32)]),
        ("spring", [f"{'0' * (number % 8)}3W" for number in range(100)], ["3W"]),
        ("quartz", ["LW", "L-0W", "7W"] * 80, ["LW", "7W"]),
        ("quartz", [f"L-{number % 31}W" for number in range(200)], [f"L-{number}W" for number in range(31)]),
    ],
)
def test_a_list_that_repeats_nearest_weekdays_costs_what_it_costs_without(
    monkeypatch: pytest.MonkeyPatch, dialect: CronDialect, repeated: list[str], once: list[str]
) -> None:
    asked = 0
    weekday = days.Shape.weekday

    def counted(shape: days.Shape, day: int) -> int:
        nonlocal asked
        asked += 1
        return weekday(shape, day)

    monkeypatch.setattr(days.Shape, "weekday", counted)
    parse, last = (spring.parse, "*") if dialect == "spring" else (quartz.parse, "?")
    [rule] = parse(f"0 0 12 {','.join(repeated)} * {last}")
    assert asked <= (len(once) + 1) * len(days.SHAPES)
    assert rule == parse(f"0 0 12 {','.join(once)} * {last}")[0]


def test_what_a_list_repeats_is_asked_once_for_each_month() -> None:
    asked: list[days.Shape] = []

    def pick(shape: days.Shape) -> int:
        asked.append(shape)
        return 2

    picked = days.either([pick] * 300 + [days.day(3), days.nth_weekday(1, 7), days.nth_weekday(1, 900_000_000)])
    assert [picked(shape) for shape in days.SHAPES] == [0b1010] * len(days.SHAPES)
    assert asked == days.SHAPES
    assert days.nth_weekday(1, 7) is days.nth_weekday(1, 900_000_000)
