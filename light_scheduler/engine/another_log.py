"""Moves a schedule from the command log in which it was defined to another log."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry

ANOTHER_LOG = 1 << 50
"""A move subtracts this from arrivals. It is more than the records of any log, and allows 8,000 moves."""

replace = msgspec.structs.replace


def in_another_log(entry: Entry, bulk_offset: int = -1) -> Entry:
    """Return the entry of a schedule for another log. That log's bulk commands up to `bulk_offset` do not apply to it.

    `arrival` and `bulk_offset` are offsets in a log. A schedule from another log is older than all later commands in
    this log, so its arrival becomes negative. The order of schedules with the same due time stays.
    """
    progress = entry.progress
    return Entry(entry.schedule, replace(progress, arrival=progress.arrival - ANOTHER_LOG, bulk_offset=bulk_offset))
