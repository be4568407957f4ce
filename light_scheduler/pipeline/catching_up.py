"""Reading a compacted log that others go on writing, as it was at one instant.

Compaction removes a record once a later one of its key is there. If that one lies behind the end of the range that is
being read, the range seems to lack the key. So:

1. Take the end of the log, and read up to it.
2. If that took less time than a record has to be old before compaction acts on it (`min.compaction.lag.ms`), no record
   behind the end has removed one before it: what was read is the log as it was at the end. Done.
3. Else take the end anew, and read what lies between the two. It has the later record of every key that was lost.
   Go on with 2. If nothing lies between them, nothing was lost: done.

A key whose last record before the last end lies in an earlier range was read there: whatever had removed it would
itself lie before the last end.
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
    """Read logs in ranges, and return what was read, the first range first: of a key, the last record counts.

    `ends` looks where the logs end. `read` reads from the one end (None: the beginnings) up to the other, and returns
    when it has. Records younger than `lag_s` do not make compaction remove others. Raises JobError if the logs grow
    faster than they are read.
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
