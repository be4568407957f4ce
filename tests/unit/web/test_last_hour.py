"""The last hour of a worker: rates, lateness and backlog, half a minute at a time."""

from __future__ import annotations

from typing import Any

from light_scheduler.lanes.context.status import LaneStatus
from light_scheduler.model.lateness import LATENESS_BOUNDS_MS, Lateness
from light_scheduler.web.last_hour import HOUR_MS, SLOT_MS, LastHour, together

AT = 1_800_000_000_000


def lane(partition: int = 0, *, accepted: int = 0, late: tuple[int, ...] = (), **fields: Any) -> LaneStatus:
    """Return a lane that has accepted commands, and fired with these latenesses (ms)."""
    lateness = Lateness()
    for ms in late:
        lateness.observe(ms)
    outcomes = {"scheduled": accepted, "rejected": 7, "not_found": 7, "conflict": 7}
    return LaneStatus(
        topic="commands", partition=partition, state="running", outcomes=outcomes, firings=len(late),
        lateness=lateness, **fields,
    )  # fmt: skip


def test_a_slot_has_what_lanes_did_in_it_and_is_shown_when_it_is_over() -> None:
    hour = LastHour()
    hour.look(AT, [lane(accepted=3, late=(4, 40), lag=5), lane(1, accepted=1)])
    hour.look(AT + SLOT_MS - 1, [lane(accepted=10, late=(4, 40, 90), lag=2), lane(1, accepted=1, lag=1)])
    assert hour.slots(AT + SLOT_MS - 1) == []
    hour.look(AT + SLOT_MS, [lane(accepted=11, late=(4, 40, 90)), lane(1, accepted=1)])
    (slot,) = hour.slots(AT + SLOT_MS)
    assert (slot.at, slot.accepted, slot.fired, slot.backlog) == (AT, 11, 3, 3)
    assert (slot.late(0.5), slot.late(0.99)) == (50, 100)
    assert [slot.accepted for slot in hour.slots(AT + 2 * SLOT_MS)] == [11, 1]


def test_a_lane_that_comes_again_counts_from_nothing() -> None:
    hour = LastHour()
    hour.look(AT, [lane(accepted=100)])
    hour.look(AT + 1, [])
    hour.look(AT + 2, [lane(accepted=101)])
    hour.look(AT + 3, [lane(accepted=4)])
    assert [slot.accepted for slot in hour.slots(AT + SLOT_MS)] == [100 + 101 + 4]


def test_it_takes_no_more_memory_than_an_hour_does() -> None:
    hour = LastHour()
    for number in range(500):
        hour.look(AT + number * SLOT_MS, [lane(accepted=number)])
    now = AT + 499 * SLOT_MS
    slots = hour.slots(now)
    assert [slot.at for slot in slots] == [*range(now - HOUR_MS, now, SLOT_MS)]
    assert len(hour._slots) == len(slots) + 1


def test_without_firings_nothing_was_late_and_beyond_the_last_bound_the_latest_is_the_bound() -> None:
    hour = LastHour()
    hour.look(AT, [lane(late=(1,) * 98 + (LATENESS_BOUNDS_MS[-1] + 1, 5_000_000))])
    hour.look(AT + SLOT_MS, [lane(late=(1,) * 98 + (LATENESS_BOUNDS_MS[-1] + 1, 5_000_000))])
    fired, idle = hour.slots(AT + 2 * SLOT_MS)
    assert (fired.late(0.98), fired.late(0.99)) == (1, 5_000_000)
    assert (idle.fired, idle.late(0.5), idle.backlog) == (0, None, None)


def test_workers_are_added_up_slot_by_slot() -> None:
    first, second = LastHour(), LastHour()
    first.look(AT, [lane(accepted=2, late=(1,), lag=1)])
    for at in (AT, AT + SLOT_MS):
        second.look(at, [lane(1, accepted=5, late=(900,))])
    one, other = together([first.slots(AT + 2 * SLOT_MS), second.slots(AT + 2 * SLOT_MS)])
    assert (one.at, one.accepted, one.fired, one.backlog, one.late(0.5), one.late(1.0)) == (AT, 7, 2, 1, 1, 1_000)
    assert (other.at, other.accepted) == (AT + SLOT_MS, 0)
    assert first.slots(AT + 2 * SLOT_MS)[0].accepted == 2
