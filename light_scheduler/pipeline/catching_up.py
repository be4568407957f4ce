"""Reads a compacted log that is still being written, consistently as of one instant.

Compaction removes a record if a later one with the same key exists. If the later one is beyond the end of the range
being read, the key seems to be missing from the range. So:

1. Take the end of the log, and read up to it.
2. If that took less time than the minimum age of records that cause compaction (`min.compaction.lag.ms`), no record
   beyond the end has removed one before it: the result is the log as of that end. Done.
3. Otherwise take a new end, and read between the two. This range has the later record of every key that was lost.
   Continue with 2. If the range is empty, nothing was lost: done.

A key whose last record before the last end is in an earlier range was read there: whatever had removed it would itself
be before the last end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from light_scheduler.errors import JobError

from .kafka.options import TopicPart

Ends = Mapping[TopicPart, int]
T = TypeVar("T")

_MOST_RANGES = 30


def caught_up(
    ends: Callable[[], Ends],
    read: Callable[[Ends | None, Ends], T],
    lag_s: float,
    now: Callable[[], float] = time.monotonic,
) -> list[T]:
    """Read logs in ranges. Return the results in order: of each key, the last record counts.

    `ends` returns the current ends of the logs. `read` reads from one end (None: the beginnings) to another. Records
    younger than `lag_s` do not cause compaction. Raises JobError if the logs grow faster than they are read.
    """
    ranges: list[T] = []
    start: Ends | None = None
    for _ in range(_MOST_RANGES):
        begun = now()
        end = ends()
        if end == start:
            return ranges
        ranges.append(read(start, end))
        if now() - begun < lag_s:
            return ranges
        start = end
    raise JobError(
        f"the changelog grows as fast as it is read: {_MOST_RANGES} times, reading what was new took over {lag_s:g} s. "
        "Give the job more cores, run it when workers have less to do, or set min.compaction.lag.ms of the changelog "
        "to 60000 at least"
    )
