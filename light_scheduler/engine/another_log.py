"""Moves a schedule from the command log in which it was defined to another log."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry
from light_scheduler.model.arrival import LOG, arrival_in

replace = msgspec.structs.replace


def out_of_log(entry: Entry, log: int) -> Entry:
    """Return the entry of a schedule that leaves log number `log`, as if that had been the first one.

    So schedules of earlier logs stay before those of later ones, whatever log they come to.
    """
    progress = entry.progress
    return Entry(entry.schedule, replace(progress, arrival=progress.arrival - arrival_in(log, 0)))


def in_another_log(entry: Entry, log: int = 0, bulk_offset: int = -1) -> Entry:
    """Return the entry of a schedule for log number `log`, whose bulk commands up to `bulk_offset` do not apply to it.

    `arrival` and `bulk_offset` are those of a log. A schedule from elsewhere is older than all later commands in this
    log, so it gets an arrival in a log before it. Schedules that have the same due time stay in order if their logs are
    not later than this one (see `out_of_log`).
    """
    progress = entry.progress
    former, offset = divmod(progress.arrival, LOG)
    arrival = arrival_in(min(former, log) - 1, offset)
    return Entry(entry.schedule, replace(progress, arrival=arrival, bulk_offset=bulk_offset))
