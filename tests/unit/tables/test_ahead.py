"""What is due ahead, by minute and by day, from the counts of a table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.progress import standing
from light_scheduler.model import NEVER, Awaited, Bounds, Entry, FixedRate, Once, Progress, Schedule, Target
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.ahead import ahead
from light_scheduler.wire.forecast import MINUTE_MS, Interval
from light_scheduler.wire.state import encode_entry, identity_of

DAY_MS = 86_400_000
TODAY = 20_000
NOW = TODAY * DAY_MS + 12 * 3_600_000


def entry(id: str, due: int, *, tenant: str = "acme", topic: str = "t", state: str = "pending") -> Entry:
    schedule = Schedule(tenant, id, 1, Once(due), Target(topic), b"x", [], 0, 0, NOW)
    match state:
        case "paused":
            return Entry(schedule, Progress(due, 0, wake=NEVER, paused=True))
        case "awaiting":
            return Entry(schedule, Progress(NEVER, 0, wake=due, awaited=(Awaited(NOW, 1, 1, due, NOW),)))
    return Entry(schedule, Progress(due, 0))


def told_of(*entries: Entry, today: int = TODAY) -> Counter[Interval]:
    table = ScheduleTable(MemoryStore())
    overlay = Overlay(table)
    for each in entries:
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=NOW)
    told = Counter[Interval]()
    for interval, change in ahead(table.counts, today):
        told[interval] += change
    return told


def test_today_and_tomorrow_are_told_by_the_minute_and_what_follows_by_the_day() -> None:
    in_an_hour, last = NOW + 3_600_000, (TODAY + 2) * DAY_MS - 1
    told = told_of(
        entry("a", in_an_hour),
        entry("b", in_an_hour + 59_999, tenant="b", topic="u"),
        entry("c", last),
        entry("d", last + 1),
        entry("e", last + DAY_MS),
        entry("overdue", NOW - 3 * DAY_MS),
    )
    assert told == {
        Interval("minute", in_an_hour // MINUTE_MS): 2,
        Interval("minute", last // MINUTE_MS): 1,
        Interval("day", (last + 1) // MINUTE_MS): 2,
        Interval("minute", (NOW - 3 * DAY_MS) // MINUTE_MS): 1,
    }


@pytest.mark.parametrize("state", ["paused", "awaiting"])
def test_what_does_not_wait_for_its_time_is_not_ahead(state: str) -> None:
    assert told_of(entry("a", NOW + MINUTE_MS, state=state)) == {}


IN_AN_HOUR = NOW + 3_600_000
RETRIED = {"due": NOW, "refusals": 1, "retry_at": NOW + MINUTE_MS}
AWAITED = {"awaited": (Awaited(NOW, 1, 1, NOW + 5 * MINUTE_MS, NOW),)}
SPREAD = {"bounds": Bounds(window=30 * MINUTE_MS)}


@pytest.mark.parametrize(
    ("progress", "definition", "least", "most"),
    [
        (RETRIED, {}, NOW + MINUTE_MS, NOW + MINUTE_MS),
        (AWAITED | {"due": IN_AN_HOUR}, {}, NOW + 5 * MINUTE_MS, NOW + 5 * MINUTE_MS),
        (AWAITED | {"due": NOW + MINUTE_MS}, {}, NOW + MINUTE_MS, NOW + MINUTE_MS),
        ({"due": IN_AN_HOUR}, SPREAD, IN_AN_HOUR + MINUTE_MS, IN_AN_HOUR + 30 * MINUTE_MS),
    ],
    ids=["retried", "waits for a completion", "waits for longer than its next firing", "has a window"],
)
def test_what_waits_beyond_its_due_time_or_for_a_completion_is_ahead_at_the_end_of_that_wait(
    progress: dict[str, Any], definition: dict[str, Any], least: int, most: int
) -> None:
    schedule = Schedule("acme", "a", 1, FixedRate(3_600_000, NOW), Target("t"), b"x", [], 0, 0, NOW, **definition)
    pending = standing(schedule, Progress(**{"arrival": 0} | progress))
    assert pending is not None
    ((interval, count),) = told_of(pending).items()
    assert (interval.unit, count) == ("minute", 1)
    assert least <= interval.begin * MINUTE_MS <= most


def test_a_day_is_told_by_the_minute_once_it_is_tomorrow() -> None:
    due = (TODAY + 2) * DAY_MS + 90_000
    assert told_of(entry("a", due)) == {Interval("day", (TODAY + 2) * 1_440): 1}
    assert told_of(entry("a", due), today=TODAY + 1) == {Interval("minute", due // MINUTE_MS): 1}


@given(st.lists(st.integers(NOW - 5 * DAY_MS, NOW + 500 * DAY_MS), max_size=50))
def test_each_pending_schedule_is_in_one_interval(dues: list[int]) -> None:
    assert told_of(*(entry(str(number), due) for number, due in enumerate(dues))).total() == len(dues)
