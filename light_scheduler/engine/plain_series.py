"""The most frequent firings of series, decided in one step: those of cron and of fixed rates that are on time."""

from __future__ import annotations

from light_scheduler.model import Bounds, Cron, FixedRate, Progress, Schedule

from .firing_rules import FiringRules
from .recurrence import next_of, within

_GRACE = Bounds().misfire_grace


def plain_step(schedule: Schedule, progress: Progress, now: int, rules: FiringRules) -> Progress | None:
    """Return how a series stands once its next planned firing is delivered, if that is all that `take_turn` decides.

    None says no more than that the firing has to go the general way.
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
    """Return whether a series waits for its next planned firing, as it was planned, and for nothing else."""
    return (
        progress.wake is None
        and progress.planned is None
        and not (progress.paused or progress.refusals or progress.triggered or progress.awaited)
        and progress.queued is None
        and progress.retry_at is None
        and progress.first_due is None
        and progress.attempt == 1
    )
