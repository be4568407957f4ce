"""A fast path for the most frequent firings of series: those of cron and fixed rates that are on time."""

from __future__ import annotations

from light_scheduler.model import Bounds, Cron, FixedRate, Progress, Schedule

from .firing_rules import FiringRules
from .recurrence import next_of, within

_GRACE = Bounds().misfire_grace


def plain_step(schedule: Schedule, progress: Progress, now: int, rules: FiringRules) -> Progress | None:
    """Return the progress of a series after its next planned firing, if `take_turn` would only deliver that.

    None only means that `take_turn` must decide the firing.
    """
    trigger, bounds, due = schedule.trigger, schedule.bounds, progress.due
    if type(trigger) is not Cron and type(trigger) is not FixedRate:
        return None
    grace = _GRACE
    if bounds is not None:
        if bounds.window or bounds.jitter or bounds.end is not None or bounds.max_firings is not None:
            return None
        grace = bounds.misfire_grace
    if (
        not due <= now <= due + grace
        or schedule.acknowledgement is not None
        or (schedule.ttl is not None and now > due + schedule.ttl)
        or not _is_plain(progress)
        or (rules.lookback_minutes is not None and rules.beyond == "dead-letter" and not rules.reaches(due, now))
    ):
        return None
    following = within(None, next_of(trigger, due))
    if following is None:
        return None
    delivered = due if due > progress.delivered else progress.delivered
    return Progress(
        following,
        progress.arrival,
        progress.sequence + 1,
        bulk_offset=progress.bulk_offset,
        delivered=delivered,
    )


def _is_plain(progress: Progress) -> bool:
    """Return whether a series only waits for its next firing, at the planned time."""
    return (
        progress.wake is None
        and progress.planned is None
        and not (progress.paused or progress.refusals or progress.triggered or progress.awaited)
        and progress.queued is None
        and progress.retry_at is None
        and progress.first_due is None
        and progress.attempt == 1
    )
