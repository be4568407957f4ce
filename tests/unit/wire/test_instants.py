from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model import LATEST_INSTANT
from light_scheduler.wire import format_instant, instant_of, parse_instant
from light_scheduler.wire.instants import FIRST_PLAUSIBLE, parse_lower_bound


def test_a_lower_bound_may_be_0() -> None:
    assert parse_lower_bound("0") == 0
    assert parse_lower_bound("1767225600000") == parse_instant("1767225600000")
    with pytest.raises(ValueError, match="looks like seconds"):
        parse_lower_bound("1")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1767225600000", 1_767_225_600_000),
        (str(FIRST_PLAUSIBLE), FIRST_PLAUSIBLE),
        (str(LATEST_INSTANT), LATEST_INSTANT),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01t00:00:00z", 1_767_225_600_000),
        ("2026-01-01 00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:30:00+01:30", 1_767_225_600_000),
        ("2025-12-31T23:00:00-01:00", 1_767_225_600_000),
        ("2026-01-01T00:00:00.5Z", 1_767_225_600_500),
        ("2026-01-01T00:00:00.123Z", 1_767_225_600_123),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("2017-01-01T00:59:60+01:00", 1_483_228_800_000),
        ("1970-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59.999Z", LATEST_INSTANT),
    ],
)
def test_reads_milliseconds_and_rfc_3339(text: str, ms: int) -> None:
    assert parse_instant(text) == ms


@pytest.mark.parametrize("fraction", ["1231", "1230000001", "123999"])
def test_rounds_fractions_finer_than_a_millisecond_up_so_that_nothing_is_early(fraction: str) -> None:
    assert parse_instant(f"2026-01-01T00:00:00.{fraction}Z") == 1_767_225_600_124


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1767225600", "looks like seconds"),
        ("0", "looks like seconds"),
        (str(FIRST_PLAUSIBLE - 1), "looks like seconds"),
        (str(LATEST_INSTANT + 1), "beyond the year 9999"),
        ("1767225600000000", "microseconds"),
        ("-1767225600000", "negative"),
        ("2026-01-01T00:00:00", "no offset"),
        ("2026-01-01T00:00:00.5", "no offset"),
        ("9999-12-31T23:59:59.9991Z", "beyond the year 9999"),
        ("9999-12-31T23:59:59-01:00", "beyond the year 9999"),
        ("1969-12-31T23:59:59Z", "before 1970"),
        ("2026-02-30T00:00:00Z", "not an instant"),
        ("2026-01-01T24:00:00Z", "not an instant"),
        ("2026-01-01T00:00:60Z", "second 60"),
        ("2026-01-01T00:00:00+24:00", "offset"),
        ("2026-01-01T00:00Z", "not an instant"),
        ("2026-01-01", "not an instant"),
        ("", "not an instant"),
        (" 1767225600000", "not an instant"),
        ("+1767225600000", "not an instant"),
        ("1_767_225_600_000", "not an instant"),
        ("1767225600000.0", "not an instant"),
        ("1.7e12", "not an instant"),
        ("NaN", "not an instant"),
        ("inf", "not an instant"),
        ("١٧٦٧٢٢٥٦٠٠٠٠٠", "not an instant"),
        ("tomorrow", "not an instant"),
        ("1" * 5_000, "not an instant"),
    ],
)
def test_refuses_what_is_no_instant_and_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse_instant(text)
    assert len(str(caught.value)) < 300


@given(st.integers(0, LATEST_INSTANT))
def test_what_is_written_reads_back(ms: int) -> None:
    assert parse_instant(format_instant(ms)) == ms


@given(st.datetimes(datetime(1974, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_a_datetime_is_never_rounded_to_an_earlier_instant(moment: datetime) -> None:
    ms = instant_of(moment)
    assert (
        timedelta(0)
        <= datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms) - moment
        < timedelta(milliseconds=1)
    )


def test_a_datetime_counts_with_its_offset() -> None:
    assert instant_of(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 1_767_225_600_000


def test_a_datetime_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        instant_of(datetime(2026, 1, 1))


def test_years_are_written_with_four_digits() -> None:
    assert format_instant(0) == "1970-01-01T00:00:00.000Z"
    assert format_instant(LATEST_INSTANT) == "9999-12-31T23:59:59.999Z"
