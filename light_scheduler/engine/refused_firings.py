"""A firing that its target refuses is set aside: it is retried in the next minute, a limited number of times.

The target may not exist, refuse the size of the record, or not allow the worker to write (`kafka.refusals`).
"""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, Progress

from .firing_rules import MINUTE_MS, FiringRules


def next_try(now: int) -> int:
    """Return when a firing that is refused at an instant is retried: at the start of the next minute."""
    return (now // MINUTE_MS + 1) * MINUTE_MS


def set_aside(entry: Entry, waits_since: int, now: int, rules: FiringRules) -> Progress | None:
    """Return the progress of a schedule whose target refused a firing, or None if it is not to be tried again."""
    retry_at = next_try(now)
    is_missed_by_then = rules.beyond == "dead-letter" and not rules.reaches(waits_since, retry_at)
    if entry.progress.refusals >= rules.retries or is_missed_by_then:
        return None
    return msgspec.structs.replace(entry.progress, refusals=entry.progress.refusals + 1, retry_at=retry_at)
