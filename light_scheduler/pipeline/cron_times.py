"""The number of times of a cron expression between two instants (UTC epoch ms). It is computed once for all series of
an expression, and day by day if the instants are far apart."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache

from light_scheduler.engine.recurrence import next_of
from light_scheduler.model import Cron

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@lru_cache(maxsize=100_000)  # after an outage, series with the same expression have missed the same times
def times_between(trigger: Cron, after: int, before: int, most: int) -> int:
    """Return the number of times of an expression after one instant and before another, at most `most`."""
    if before <= after:
        return 0
    if before - after <= HOUR_MS:
        return min(most, len(_times(trigger, after, before)))
    first, last = after // DAY_MS, before // DAY_MS
    number = -bisect_right(_times_of(trigger, first), after)
    for day in range(first, last):
        number += _number_of(trigger, day)
        if number >= most:
            return most
    return min(most, number + bisect_left(_times_of(trigger, last), before))


@lru_cache(maxsize=100_000)
def _number_of(trigger: Cron, day: int) -> int:
    return len(_times_of(trigger, day))


@lru_cache(maxsize=512)  # a day with a time every second takes 0.7 MB
def _times_of(trigger: Cron, day: int) -> array[int]:
    """Return the times of an expression on a day of the epoch."""
    return _times(trigger, day * DAY_MS - 1, (day + 1) * DAY_MS)


def _times(trigger: Cron, after: int, before: int) -> array[int]:
    times, at = array("q"), after
    while (following := next_of(trigger, at)) is not None and following < before:
        times.append(following)
        at = following
    return times
