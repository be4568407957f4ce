"""Counts the future firings of a partition: by minute for today and tomorrow (UTC), then by day.

Each pending schedule counts in the interval in which it wakes; an overdue one in the minute of its due time. Paused
schedules, and schedules that wait for a completion and have no firing planned, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from light_scheduler.wire.forecast import Interval

from .counts import MINUTES_A_DAY, Counts

BY_MINUTE_DAYS = 2

_LOW = 0xFFFFFFFF


def ahead(counts: Counts, today: int) -> Iterator[tuple[Interval, int]]:
    """Yield changes of intervals. Their sum by interval is the number of firings due in it, which may be 0.

    `today` is a number of days since 1970. Other tasks may run between two changes. If the counts change meanwhile,
    some of the changes are those from before.
    """
    is_pending = _pending(counts)
    for cell, change in counts.each_by_day():
        day = cell & _LOW
        if day >= today + BY_MINUTE_DAYS and is_pending(cell >> 32):
            yield Interval("day", day * MINUTES_A_DAY), change
    for day in sorted(day for day in counts.days() if day < today + BY_MINUTE_DAYS):
        for cell, change in counts.each_by_minute(day):
            if is_pending(cell >> 32):
                yield Interval("minute", cell & _LOW), change


def _pending(counts: Counts) -> Callable[[int], bool]:
    """Return a predicate `(group number) -> bool`: whether the schedules of a group are in the state `pending`."""
    known: dict[int, bool] = {}

    def is_pending(number: int) -> bool:
        found = known.get(number)
        if found is None:
            group = counts.group(number)
            found = known[number] = group is not None and group.state == "pending"
        return found

    return is_pending
