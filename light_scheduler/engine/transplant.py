"""A schedule that comes to another log of commands than the one that it was defined in."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry

ANOTHER_LOG = 1 << 50
"""By how much a move sets arrivals back: more records than a log ever has. There is room for 8,000 moves."""

replace = msgspec.structs.replace


def transplanted(entry: Entry, swept: int = -1) -> Entry:
    """Return a schedule as it is kept beside another log, all of whose bulk commands up to `swept` have dealt with it.

    `arrival` and `swept` are offsets of a log, and what comes from another one was there before every command that is
    still to come. So arrivals become negative. Their order, among schedules of the same instant, stays.
    """
    progress = entry.progress
    return Entry(entry.schedule, replace(progress, arrival=progress.arrival - ANOTHER_LOG, swept=swept))
