"""Retries of refused firings: a firing that its target refuses is retried once a minute, a limited number of times.

The target may not exist, refuse the size of the record, or not allow the worker to write (`kafka.refusals`).
`Progress.refusals` and `retry_at` are those of the next firing; of a paused schedule, those of the next one if it is
resumed. What is triggered meanwhile goes ahead of that one, and has retries of its own.
"""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, Progress, Schedule

from .completion import next_again
from .firing_rules import MINUTE_MS, FiringRules
from .progress import release_of

OVERTAKEN = 0
"""`Progress.retry_at` of a refused firing that a triggered one goes ahead of while its schedule is paused. If that one
is refused too, no more is known of it.
"""

replace = msgspec.structs.replace


def next_try(now: int) -> int:
    """Return when a firing that is refused at `now` is retried: at the start of the next minute."""
    return (now // MINUTE_MS + 1) * MINUTE_MS


def set_aside(entry: Entry, waits_since: int, now: int, rules: FiringRules) -> Progress | None:
    """Return the progress of a schedule whose target refused a firing; None if it must not be retried."""
    retry_at = next_try(now)
    is_missed_by_then = rules.beyond == "dead-letter" and not rules.reaches(waits_since, retry_at)
    if entry.progress.refusals >= rules.retries or is_missed_by_then:
        return None
    return replace(entry.progress, refusals=entry.progress.refusals + 1, retry_at=retry_at)


def with_paused(schedule: Schedule, progress: Progress, now: int, *, paused: bool) -> Progress:
    """Return the progress of a schedule that is paused or resumed: what was refused has no more retries for it."""
    changed = replace(progress, paused=paused)
    if not progress.triggered or _is_triggered_next(schedule, progress, now):
        return changed  # the same firing is next
    if paused:
        return overtaken(changed)
    return changed if progress.retry_at == OVERTAKEN else replace(changed, refusals=0, retry_at=None)


def overtaken(progress: Progress) -> Progress:
    """Return the progress of a paused schedule in which a triggered firing goes ahead of one that may be refused."""
    return progress if progress.retry_at is None else replace(progress, refusals=0, retry_at=OVERTAKEN)


def after_overtaking(before: Progress, done: Progress) -> Progress:
    """Return the progress after a triggered firing has been dealt with, which may have gone ahead of a refused one."""
    is_next = before.paused and before.retry_at == OVERTAKEN and done.due == before.due
    return replace(done, retry_at=OVERTAKEN) if is_next else done


def _is_triggered_next(schedule: Schedule, progress: Progress, now: int) -> bool:
    """Return whether the first of the triggered firings is next even if the schedule is not paused."""
    if next_again(schedule, progress, now) is not None or (progress.queued is not None and not progress.awaited):
        return False
    return release_of(schedule, progress) > min(now, progress.triggered[0])
