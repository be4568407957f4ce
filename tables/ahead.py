"""What is due ahead in a partition, from its counts: by the minute today and tomorrow (UTC), by the day after that.

Each schedule that waits for its time is in one interval, what is overdue in its own minute. Paused schedules, and
those that wait for a completion, are in none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from light_scheduler.wire.forecast import Interval, Unit

from .counts import MINUTES_A_DAY, Counts

BY_MINUTE_DAYS = 2

_LOW = 0xFFFFFFFF


def ahead(counts: Counts, today: int) -> Iterator[Counter[Interval]]:
    """Yield what is due by interval, part by part: no interval is in two of them.

    `today` is the number of the day since 1970. Between two parts others may work, and the counts may change.
    """
    days = _by_time(counts, counts.by_day())
    later = (day for day in days if day >= today + BY_MINUTE_DAYS)
    yield Counter({Interval("day", day * MINUTES_A_DAY): days[day] for day in later})
    for day in sorted(day for day in days if day < today + BY_MINUTE_DAYS):
        yield _intervals("minute", _by_time(counts, counts.by_minute(day)))


def _intervals(unit: Unit, times: Mapping[int, int]) -> Counter[Interval]:
    return Counter({Interval(unit, begin): count for begin, count in times.items()})


def _by_time(counts: Counts, cells: Mapping[int, int]) -> Counter[int]:
    """Add up the groups of pending schedules: {group u32 | time u32: count} -> {time: count}."""
    sums: Counter[int] = Counter()
    is_pending: dict[int, bool] = {}
    for cell, count in cells.items():
        number = cell >> 32
        if (known := is_pending.get(number)) is None:
            group = counts.group(number)
            known = is_pending[number] = group is not None and group.state == "pending"
        if known:
            sums[cell & _LOW] += count
    return sums
