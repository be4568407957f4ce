"""Finds firings of a series that are not delivered because a command replaces or reschedules it.

A new definition begins after its command was recorded. A firing that was due before and was not delivered, because no
worker was running or its target refused it, belongs to the old definition, and the history records it as skipped.
Instants are UTC epoch ms.
"""

from __future__ import annotations

from msgspec.structs import replace

from light_scheduler.model import NO_BOUNDS, Backoff, Entry, FixedDelay, FixedRate, Once, Progress, Schedule
from light_scheduler.wire import format_instant

from .decision import Skipped
from .misfire import times_after, times_until
from .progress import planned_at, planned_for
from .recurrence import is_planned, next_planned


def left_undelivered(current: Entry, after: Progress, recorded_at: int, done: str) -> Skipped | None:
    """Return the firings that a series still owed when a command was recorded, and will not deliver.

    `after` is its progress with the new definition, `done` what the command has done to it. The time of what fires
    once, and the attempts of a backoff series, are not among them: the firing, or the work, gets other times.
    """
    schedule, progress = current.schedule, current.progress
    dues = _waiting(current, after, recorded_at)
    count = len(dues)
    if planned := _planned_until(schedule, progress, recorded_at):
        first = progress
        begins = planned_at(after)
        if begins <= recorded_at and _has(schedule, planned_at(progress), planned, begins):
            # The new definition delivers that one.
            planned -= 1
            if begins == planned_at(progress):
                following = next_planned(schedule, planned_at(progress), progress.attempt)
                first = planned_for(schedule, progress, following, progress.due + 1)
        if planned > 0:
            dues.append(first.due)
            count += planned
    if not dues:
        return None
    paused = ", which was paused" if progress.paused else ""
    reason = f"not delivered before a command of {format_instant(recorded_at)} {done} the schedule{paused}"
    return Skipped(replace(progress, due=min(dues), planned=None), count, reason)


def _waiting(current: Entry, after: Progress, recorded_at: int) -> list[int]:
    """Return when the firings were due that were asked for or queued, and that the new definition does not keep."""
    progress = current.progress
    if isinstance(current.schedule.trigger, Once) and not _is_before_what_waits(current.schedule.trigger, progress):
        return []
    dues = [due for due in progress.triggered if due not in after.triggered]
    if progress.queued is not None and after.queued is None and progress.queued <= recorded_at:
        dues.append(progress.queued)
    return dues


def _is_before_what_waits(once: Once, progress: Progress) -> bool:
    """Return whether a single time was past already when a series was rescheduled to it: what waits is of the series.

    Else a trigger or the queue has the single firing itself.
    """
    return once.at <= progress.delivered or (progress.queued is not None and once.at < progress.queued)


def _planned_until(schedule: Schedule, progress: Progress, until: int) -> int:
    """Return the number of firings that were planned from the next one until an instant."""
    planned, bounds = planned_at(progress), schedule.bounds or NO_BOUNDS
    if planned > until or isinstance(schedule.trigger, Once | Backoff):
        return 0
    if isinstance(schedule.trigger, FixedDelay):
        return 1  # it has one firing waiting
    if bounds.max_firings is None:
        return times_until(schedule, planned, until)
    # Those that its misfire policy would have left out do not count for its maximum.
    surely = until - bounds.window - bounds.misfire_grace - 1
    if bounds.misfire == "all" or surely < planned:
        missed, in_time = 0, times_until(schedule, planned, until)
    else:
        missed, in_time = times_until(schedule, planned, surely), times_after(schedule, planned, surely, until)
    waiting = len(progress.triggered) + (progress.queued is not None)
    return missed + min(in_time, bounds.max_firings - waiting - progress.sequence + 1)


def _has(schedule: Schedule, first: int, count: int, instant: int) -> bool:
    """Return whether an instant is one of those at which a series was planned `count` times from its next firing on."""
    if instant <= first:
        return instant == first
    trigger, bounds = schedule.trigger, schedule.bounds or NO_BOUNDS
    if bounds.end is not None and instant > bounds.end:
        return False
    if isinstance(trigger, FixedRate):
        is_one = (instant - first) % trigger.interval == 0
    else:
        is_one = is_planned(trigger, instant)
    return is_one and (bounds.max_firings is None or times_until(schedule, first, instant) <= count)
