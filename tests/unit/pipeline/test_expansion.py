"""Counting firings by arithmetic comes to what the engine says, firing by firing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.model import Bounds, Cron, Entry, FixedRate, Once, Progress, Schedule, Target, Trigger
from light_scheduler.pipeline import expansion
from light_scheduler.pipeline.expansion import MINUTE_MS, Expansion, expand

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, HOUR = 1_000, 3_600_000
END = M + 3 * HOUR


def pending(trigger: Trigger, due: int, bounds: Bounds | None = None, topic: str = "t", **progress: Any) -> Entry:
    schedule = Schedule("default", "a", 1, trigger, Target(topic), None, [], 0, 0, M - HOUR, bounds=bounds)
    return Entry(schedule, Progress(due, 0, **progress))


def by_engine(entries: list[Entry]) -> Counter[tuple[str, int]]:
    return Counter(
        (entry.schedule.target.topic, due // MINUTE_MS * MINUTE_MS)
        for entry in entries
        for due in expand(entry, M, END)
        if due < END
    )


def counted(entries: list[Entry]) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    expanded = Expansion(M, END)
    for entry in entries:
        expanded.add(entry)
    for part in expanded.firings():
        for minute, number in zip(part.minutes.tolist(), part.numbers.tolist(), strict=True):
            assert number > 0
            found[part.topic, minute] += number
    return found


INTERVALS = [1, 7, 999, SECOND, 7 * SECOND, 45 * SECOND, MINUTE_MS, 90 * SECOND, 61_001, 7 * MINUTE_MS, HOUR, 5 * HOUR]
EXPRESSIONS = ["* * * * *", "*/7 * * * *", "30 1 * * *", "0 0 1 1 *"]
TRIGGERS: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(FixedRate, st.sampled_from([each for each in INTERVALS if each >= SECOND]), st.just(M - HOUR + 17)),
    st.builds(Cron, st.sampled_from(EXPRESSIONS), st.just("unix"), st.sampled_from(["UTC", "Europe/Berlin"])),
    st.just(Cron("*/20 * * * * *", "spring", "UTC")),
    st.builds(Once, st.just(M)),
)
BOUNDS = st.one_of(
    st.none(),
    st.builds(
        Bounds,
        end=st.one_of(st.none(), st.integers(M - HOUR, END + HOUR)),
        max_firings=st.one_of(st.none(), st.integers(3, 200)),
        jitter=st.sampled_from([0, 0, 0, 90_000]),
    ),
)
ENTRIES = st.builds(
    pending,
    TRIGGERS,
    st.integers(M - HOUR, END + HOUR),
    BOUNDS,
    st.sampled_from(["t", "u"]),
    sequence=st.integers(1, 3),
    paused=st.sampled_from([False, False, False, True]),
    triggered=st.sampled_from([(), (), (), (M + HOUR,), (M - HOUR, M + 2 * HOUR)]),
    queued=st.sampled_from([None, None, None, M + HOUR]),
)


@settings(max_examples=tries(150))
@given(st.lists(ENTRIES, min_size=1, max_size=8))
def test_any_schedules_are_counted_as_the_engine_would_fire_them(entries: list[Entry]) -> None:
    assert counted(entries) == by_engine(entries)


KINDS = [None, Bounds(max_firings=5), Bounds(end=M + HOUR), Bounds(end=M - 1), Bounds(max_firings=300_000)]


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("bounds", [[None], KINDS[-1:], 3 * KINDS], ids=["one", "one that ends", "many are summed up"])
@pytest.mark.parametrize("due", [M + 59_999, M - 10 * SECOND])
def test_series_at_one_interval_are_counted_together_to_the_last_firing(
    interval: int, bounds: list[Bounds | None], due: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MOST_FIRINGS", 7)
    entries = [pending(FixedRate(interval, M + 3), due + 7 * number, each) for number, each in enumerate(bounds)]
    assert counted(entries) == sum(map(of_rate, entries), Counter())


def of_rate(entry: Entry) -> Counter[tuple[str, int]]:
    """Return the firings of a series at a fixed rate by minute, one by one."""
    trigger, due, bounds = entry.schedule.trigger, entry.progress.due, entry.schedule.bounds or Bounds()
    assert isinstance(trigger, FixedRate)
    assert trigger.anchor is not None
    following = due + trigger.interval - (due - trigger.anchor) % trigger.interval
    until = END if bounds.end is None else min(END, bounds.end + 1)
    times = np.append(due, np.arange(following, until, trigger.interval))[: bounds.max_firings]
    numbers = np.bincount((np.maximum(M, times) - M) // MINUTE_MS).tolist()
    return Counter({("t", M + minute * MINUTE_MS): number for minute, number in enumerate(numbers) if number})


@pytest.mark.parametrize(
    ("trigger", "bounds"),
    [(FixedRate(MINUTE_MS, M), Bounds(jitter=1_000)), (Cron("* * * * *", "unix", "UTC"), None)],
    ids=["jitter", "cron"],
)
def test_only_the_first_firings_of_a_schedule_are_counted_and_that_is_told(
    trigger: Trigger, bounds: Bounds | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MOST_FIRINGS", 20)
    entries = [pending(trigger, M - 5 * MINUTE_MS, bounds), pending(trigger, END - 5 * MINUTE_MS, bounds)]
    expanded = Expansion(M, END)
    for entry in entries:
        expanded.add(entry)
    assert expanded.cut == 1
    assert counted(entries) == by_engine(entries)
    assert counted(entries).total() == 25
