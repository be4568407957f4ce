"""Counts due schedules by day in a scan of a table, with pauses for other tasks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice

from light_scheduler.model import LATEST_INSTANT

from . import layout
from .table import ScheduleTable

DAY_MS = 86_400_000
AT_ONCE = 1_000
REST = 20
"""Rows counted between two pauses. A pause is `REST` times as long as the counting before it."""


async def days_of(table: ScheduleTable, is_open: Callable[[], bool]) -> Counter[int] | None:
    """Return the number of schedules that wake on each day since 1970 (UTC); None if the table was closed meanwhile."""
    days: Counter[int] = Counter()
    rows = table.store.scan(layout.USERS_INDEX_START, layout.INDEX_END)
    while is_open():
        begun = time.monotonic()
        keys = [key for key, _ in islice(rows, AT_ONCE)]
        days.update(due // DAY_MS for due in map(layout.due_of, keys) if due <= LATEST_INSTANT)
        if len(keys) < AT_ONCE:
            return days
        await asyncio.sleep(REST * (time.monotonic() - begun))
    return None
