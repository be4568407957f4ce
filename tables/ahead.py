"""Counts of future firings of a partition: by the minute for today and tomorrow (UTC), then by the day.

Each pending schedule is in the interval in which it wakes; an overdue one is in the minute of its due time. Paused
schedules, and those that wait for a completion and have no firing planned, are in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from light_scheduler.wire.forecast import Interval

from .counts import MINUTES_A_DAY, Counts

BY_MINUTE_DAYS = 2

_LOW = 0xFFFFFFFF


def ahead(counts: Counts, today: int) -> Iterator[tuple[Interval, int]]:
    """Yield changes of intervals, which add up to what is due in each; some add up to 0.

    `today` is the number of the day since 1970. Between two of them others may work. If the counts change meanwhile,
    what is yielded is partly what they were.
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
    """Return what tells, by the number of a group, whether its schedules wait for their time."""
    known: dict[int, bool] = {}

    def is_pending(number: int) -> bool:
        found = known.get(number)
        if found is None:
            group = counts.group(number)
            found = known[number] = group is not None and group.state == "pending"
        return found

    return is_pending
