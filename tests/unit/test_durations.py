"""Durations: what is understood, what is refused, and that writing and reading agree."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.durations import format_duration, parse_duration, parse_typed_duration

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1500", 1_500),
        ("0ms", 0),
        ("250ms", 250),
        ("90s", 90 * SECOND),
        ("15m", 15 * MINUTE),
        ("2h", 2 * HOUR),
        ("7d", 7 * DAY),
        ("1.5s", 1_500),
        ("0.001s", 1),
        ("0.25h", 15 * MINUTE),
        ("2.0ms", 2),
        ("PT15M", 15 * MINUTE),
        ("P1D", DAY),
        ("P2W", 14 * DAY),
        ("P1DT2H3M4.005S", DAY + 2 * HOUR + 3 * MINUTE + 4_005),
        ("PT0,5S", 500),
        ("PT0S", 0),
        ("PT0.5H", 30 * MINUTE),
        ("PT1.5M", 90 * SECOND),
        ("PT1,5M", 90 * SECOND),
        ("P0.5D", 12 * HOUR),
        ("P1.5W", 10 * DAY + 12 * HOUR),
        ("P1DT2H0.1M", DAY + 2 * HOUR + 6 * SECOND),
        ("PT0.0010S", 1),
        ("PT0.00001H", 36),
        ("PT9007199254740.993S", 9_007_199_254_740_993),
        ("9007199254740993ms", 9_007_199_254_740_993),
    ],
)
def test_a_duration_is_understood_to_the_millisecond(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 5s",
        "5 s",
        "5s\n",
        "s",
        "-5s",
        "-1",
        "+1",
        "1e3",
        "1_000",
        ".5s",
        "1.s",
        "5S",
        "5w",
        "5sec",
        "1m30s",
        "½s",
        "٣s",
        "٣",
        "P",
        "PT",
        "P1DT",
        "PT15",
        "P1M",
        "P1Y",
        "P1H",
        "PT0.5H30M",
        "P0.5DT1H",
        "PT.5H",
        "PT1.H",
        "-PT1S",
        "pt15m",
        "inf",
        "nan",
        "1" * 65,
        "tomorrow",
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: use milliseconds, 250ms, 90s"):
        parse_duration(text)


@pytest.mark.parametrize("number", ["1", "30", "007", "1500"])
def test_a_person_has_to_type_a_unit(number: str) -> None:
    with pytest.raises(ValueError, match=f"'{number}' has no unit: write {number}ms, {number}s, {number}m"):
        parse_typed_duration(number)


@pytest.mark.parametrize(("text", "ms"), [("0", 0), ("30s", 30 * SECOND), ("1500ms", 1_500), ("PT15M", 15 * MINUTE)])
def test_what_a_person_types_is_understood_with_a_unit_and_zero_without_one(text: str, ms: int) -> None:
    assert parse_typed_duration(text) == ms


@pytest.mark.parametrize("text", ["", "-1", "5 s", "1.5", "soon", "1" * 65])
def test_a_person_who_types_no_duration_is_not_told_to_leave_out_the_unit(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: use 250ms, 90s"):
        parse_typed_duration(text)


@pytest.mark.parametrize(
    "text", ["0.5ms", "1.0005s", "PT0.0001S", "PT0.0000001H", "P0.000000001D", "0.00000000001ms", "0.0000001h"]
)
def test_a_part_of_a_millisecond_is_refused_and_not_rounded(text: str) -> None:
    with pytest.raises(ValueError, match=r"finer than a millisecond|is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0ms"),
        (1, "1ms"),
        (1_500, "1500ms"),
        (SECOND, "1s"),
        (90 * SECOND, "90s"),
        (HOUR, "1h"),
        (36 * HOUR, "36h"),
        (7 * DAY, "7d"),
    ],
)
def test_a_duration_is_written_in_the_largest_unit_that_divides_it(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(min_value=0, max_value=10**30))
def test_what_is_written_reads_back_the_same(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@given(st.integers(min_value=0, max_value=10**15))
def test_every_spelling_of_a_duration_means_the_same(ms: int) -> None:
    seconds = f"{ms // 1_000}.{ms % 1_000:03}"
    assert {parse_duration(text) for text in (str(ms), f"{ms}ms", f"{seconds}s", f"PT{seconds}S")} == {ms}


@given(st.integers(min_value=0, max_value=10**15))
def test_a_fraction_of_an_hour_is_exact(count: int) -> None:
    microhours = 5 * count
    assert parse_duration(f"PT{microhours // 10**6}.{microhours % 10**6:06}H") == 18 * count


@given(st.text(max_size=80))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    with suppress(ValueError):
        assert parse_duration(text) >= 0
