"""Advances a schedule from one firing to the next. Instants are UTC epoch ms."""

from __future__ import annotations

import msgspec

from light_scheduler.model import (
    LATEST_INSTANT,
    NEVER,
    NO_BOUNDS,
    Backoff,
    Cron,
    Entry,
    FixedDelay,
    Once,
    Progress,
    Schedule,
)

from .recurrence import is_last_attempt, next_planned, within
from .spread import offset_of

replace = msgspec.structs.replace


def planned_at(progress: Progress) -> int:
    """Return the planned time of the next firing, before jitter."""
    return progress.due if progress.planned is None else progress.planned


def release_of(schedule: Schedule, progress: Progress) -> int:
    """Return when the next planned firing may be delivered: at its due time, or within its window after that.

    A window ends no later than the time to live, and than the last possible instant.
    """
    bounds = schedule.bounds
    if bounds is None or bounds.window == 0 or progress.due == NEVER:
        return progress.due
    window = bounds.window if schedule.ttl is None else min(bounds.window, schedule.ttl)
    window = min(window, LATEST_INSTANT - progress.due)
    return progress.due + offset_of("window", schedule.tenant, schedule.id, planned_at(progress), window)


def window_end(schedule: Schedule, progress: Progress) -> int:
    """Return the time until which the next planned firing is on time."""
    return progress.due + (schedule.bounds or NO_BOUNDS).window


def is_wanted_late(schedule: Schedule) -> bool:
    """Return whether a schedule's firing is delivered however late it is, because its sender requested that."""
    return isinstance(schedule.trigger, Once) and schedule.trigger.late


def is_misfire(schedule: Schedule, progress: Progress, now: int) -> bool:
    """Return whether the next planned firing is later than its grace."""
    return now - window_end(schedule, progress) > (schedule.bounds or NO_BOUNDS).misfire_grace


def planned_for(schedule: Schedule, progress: Progress, planned: int | None, earliest: int = 0) -> Progress:
    """Return a schedule's progress with its next firing planned for an instant; None if no firing is left.

    Jitter moves it later, but not past the schedule's end or the last possible instant. It is not due before
    `earliest`, so that firings of a schedule keep their order. If that moves it past the end, no firing is left.
    """
    bounds = schedule.bounds or NO_BOUNDS
    planned = within(bounds, planned)
    if planned is None or is_exhausted(schedule, progress):
        return replace(progress, due=NEVER, planned=None)
    end = LATEST_INSTANT if bounds.end is None else bounds.end
    jitter = min(bounds.jitter, end - planned)
    due = max(planned + offset_of("jitter", schedule.tenant, schedule.id, planned, jitter), earliest)
    while due in progress.triggered or due == progress.queued or any(each.due == due for each in progress.awaited):
        due += 1  # two firings never have the same due time, since it identifies them
    if due > end:
        return replace(progress, due=NEVER, planned=None)
    return replace(progress, due=due, planned=None if due == planned else planned)


def after_planned(schedule: Schedule, progress: Progress, now: int, *, counts: bool = True) -> Progress:
    """Return the progress after the next planned firing was handled at `now`, whether or not it was delivered.

    `counts` says whether it uses a sequence number.
    """
    done = counted(schedule, progress) if counts else replace(progress, refusals=0, retry_at=None)
    planned = planned_at(progress)
    if not isinstance(schedule.trigger, Backoff):
        return planned_for(schedule, done, next_planned(schedule, planned, attempt=1), progress.due + 1)
    # Count from now after an outage. Otherwise, intervals that have passed would cause a burst of attempts.
    begins = now if is_misfire(schedule, progress, now) else planned
    following = next_planned(schedule, begins, progress.attempt)
    first_due = progress.due if progress.first_due is None else progress.first_due
    done = replace(done, attempt=progress.attempt + 1, first_due=first_due)
    return planned_for(schedule, done, following, progress.due + 1)


def counted(schedule: Schedule, progress: Progress) -> Progress:
    """Return the progress after one more firing has used its sequence number."""
    done = replace(progress, sequence=progress.sequence + 1, refusals=0, retry_at=None)
    return replace(done, due=NEVER, planned=None) if is_exhausted(schedule, done) else done


def run_ended(schedule: Schedule, progress: Progress, ended_at: int) -> Progress:
    """Return the progress after a run has ended. In a fixed-delay series, the delay begins."""
    is_over = not progress.awaited and progress.queued is None
    if isinstance(schedule.trigger, FixedDelay) and progress.due == NEVER and is_over:
        start = (schedule.bounds or NO_BOUNDS).start or 0
        return planned_for(schedule, progress, max(ended_at + schedule.trigger.delay, start))
    return progress


def standing(schedule: Schedule, progress: Progress) -> Entry | None:
    """Return the pending entry of a schedule, with its next wake time; None if nothing is left to do."""
    if progress.due == NEVER and not progress.triggered and progress.queued is None and not _is_awaiting(progress):
        return None
    wake: int | None = _wakes_at(schedule, progress)
    if wake == progress.due:
        wake = None
    return Entry(schedule, progress if progress.wake == wake else replace(progress, wake=wake))


def is_exhausted(schedule: Schedule, progress: Progress) -> bool:
    """Return whether a schedule has reached its maximum number of firings, including waiting ones."""
    most = None if schedule.bounds is None else schedule.bounds.max_firings
    if most is None:
        return False
    return progress.sequence + len(progress.triggered) + (progress.queued is not None) > most


def why_finished(schedule: Schedule, progress: Progress) -> str | None:
    """Return why a series with this progress after its last firing is finished; None if it is not a series."""
    trigger, bounds = schedule.trigger, schedule.bounds or NO_BOUNDS
    if isinstance(trigger, Once):
        return None
    if is_exhausted(schedule, progress):
        return f"it has had its maximum number of firings, {bounds.max_firings}"
    if isinstance(trigger, Backoff) and is_last_attempt(trigger, progress.attempt - 1):
        return f"it has had its last attempt, number {progress.attempt - 1}"
    if bounds.end is not None:
        return "no firing is left before its end"
    if isinstance(trigger, Cron):
        return "its cron expression has no later time"
    return "its next time is after the year 9999"


def _is_awaiting(progress: Progress) -> bool:
    return any(each.until < NEVER for each in progress.awaited)


def _wakes_at(schedule: Schedule, progress: Progress) -> int:
    wake = min((NEVER, *progress.triggered))
    if not progress.paused:
        wake = min((wake, release_of(schedule, progress), *(each.until for each in progress.awaited)))
        if progress.queued is not None and not progress.awaited:
            wake = min(wake, progress.queued)
    # A refused firing blocks all others of the schedule, to keep their order.
    return wake if progress.retry_at is None else max(wake, progress.retry_at)
