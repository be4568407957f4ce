from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.life import HOUR, MIDNIGHT, MINUTE, SECOND, SOURCE, Life
from support.tries import tries

from light_scheduler.engine import preview
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    NOW,
    After,
    Backoff,
    Bounds,
    Cron,
    FixedDelay,
    FixedRate,
    Once,
    ScheduleCommand,
    Target,
    Timing,
)

M = MIDNIGHT


def previewed(timing: Timing, count: int = 5, **bounds: Any) -> list[int]:
    asked = Bounds(**bounds) if bounds else None
    command = ScheduleCommand(
        **SOURCE, timing=timing, target=Target("t"), payload=b"", headers=[], recorded_at=M, bounds=asked
    )
    return preview(command, count)


@pytest.mark.parametrize(
    ("timing", "bounds", "expected"),
    [
        (Once(M + HOUR), {}, [HOUR]),
        (Once(M - HOUR), {}, [-HOUR]),
        (After(5), {}, [5]),
        (NOW, {}, [0]),
        (FixedRate(HOUR), {}, [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR]),
        (FixedRate(HOUR), {"max_firings": 2}, [HOUR, 2 * HOUR]),
        (FixedRate(HOUR), {"start": M - MINUTE, "end": M + 2 * HOUR}, [59 * MINUTE, 119 * MINUTE]),
        (FixedDelay(HOUR), {}, [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR]),
        (FixedDelay(HOUR), {"start": M, "max_firings": 2}, [0, HOUR]),
        (Cron("*/20 * * * *"), {"end": M + HOUR}, [20 * MINUTE, 40 * MINUTE, 60 * MINUTE]),
        (Backoff((SECOND, 2 * SECOND, 4 * SECOND)), {}, [SECOND, 3 * SECOND, 7 * SECOND]),
        (Backoff((), SECOND, 2.0), {}, [SECOND, 3 * SECOND, 7 * SECOND, 15 * SECOND, 31 * SECOND]),
    ],
)
def test_a_preview_is_the_due_times_to_come(timing: Timing, bounds: dict[str, Any], expected: list[int]) -> None:
    assert previewed(timing, **bounds) == [M + offset for offset in expected]


def test_a_fixed_delay_begins_when_the_run_before_it_is_delivered_within_its_window() -> None:
    first, *following = previewed(FixedDelay(HOUR), window=30 * MINUTE)
    assert first == M + HOUR
    for before, due in pairwise([first, *following]):
        assert before + HOUR < due <= before + HOUR + 30 * MINUTE


def test_a_preview_of_nothing_is_empty() -> None:
    assert previewed(FixedRate(HOUR), 0) == []


def test_a_preview_of_what_would_be_rejected_is_rejected() -> None:
    with pytest.raises(InvalidCommand, match="schedule-cron"):
        previewed(Cron("61 * * * *"))


timings = (
    st.builds(FixedRate, st.integers(1, 10 * HOUR))
    | st.builds(FixedDelay, st.integers(1, 10 * HOUR))
    | st.sampled_from([Cron("*/7 * * * *"), Cron("0 9 * * 1-5", "unix", "America/New_York")])
    | st.builds(Backoff, st.lists(st.integers(1, HOUR), min_size=1, max_size=9).map(tuple))
    | st.builds(
        Backoff, st.just(()), st.integers(1, HOUR), st.sampled_from([1.0, 1.5, 2.0]), st.just(HOUR), spread=st.just(0.3)
    )
    | st.builds(Once, st.integers(M, M + HOUR))
)


@settings(max_examples=tries(60))
@given(timings, st.integers(0, HOUR), st.integers(0, HOUR), st.none() | st.integers(1, 12), st.integers(-HOUR, HOUR))
def test_a_preview_is_what_then_happens(timing: Timing, jitter: int, window: int, most: int | None, start: int) -> None:
    bounds: dict[str, Any] = {"jitter": jitter, "window": window, "misfire": "all"}
    if not isinstance(timing, Once):
        bounds |= {"max_firings": most, "start": M + start}
    expected = previewed(timing, 10, **bounds)
    life = Life()
    life.schedule(timing, **bounds)
    while life.entry is not None and len(life.delivered) < 10:
        now = life.entry.progress.wakes_at
        life.turn(now)
        if isinstance(timing, FixedDelay) and life.dues:
            life.complete(life.dues[-1], now, recorded_at=life.dues[-1])
    assert life.dues == expected
