"""Moves a schedule from the command log in which it was defined to another log."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry
from light_scheduler.model.arrival import LOG, arrival_in

replace = msgspec.structs.replace


def in_another_log(entry: Entry, log: int = 0, bulk_offset: int = -1) -> Entry:
    """Return the entry of a schedule for log number `log`, whose bulk commands up to `bulk_offset` do not apply to it.

    `arrival` and `bulk_offset` are those of a log. A schedule from elsewhere is older than all later commands in this
    log, so it gets an arrival in a log before it. Schedules of one log that have the same due time stay in order.
    """
    progress = entry.progress
    former, offset = divmod(progress.arrival, LOG)
    arrival = arrival_in(min(former, log) - 1, offset)
    return Entry(entry.schedule, replace(progress, arrival=arrival, bulk_offset=bulk_offset))
