"""Moves a schedule from the log of commands in which it was defined to another one."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry

ANOTHER_LOG = 1 << 50
"""Subtracted from arrivals by a move: more records than a log ever has. There is room for 8,000 moves."""

replace = msgspec.structs.replace


def in_another_log(entry: Entry, bulk_offset: int = -1) -> Entry:
    """Return a schedule as it is stored for another log; that log's bulk commands up to `bulk_offset` are done with it.

    `arrival` and `bulk_offset` are offsets of a log. A schedule from another log is older than all commands still to
    come in this one, so its arrival becomes negative. The order of schedules with the same due time stays.
    """
    progress = entry.progress
    return Entry(entry.schedule, replace(progress, arrival=progress.arrival - ANOTHER_LOG, bulk_offset=bulk_offset))
