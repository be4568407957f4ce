"""What becomes of the firings that a series has missed. Instants are UTC epoch ms."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model import NO_BOUNDS, Backoff, FixedDelay, FixedRate, Once, Schedule

from .recurrence import next_planned, within

MOST_COUNTED = 100_000
"""Missed firings of a cron expression that are counted one by one before the count jumps ahead."""


class CaughtUp(NamedTuple):
    """Where a series goes on after an outage: the firing that is next, as planned (None: there is none), and how many
    before it are not delivered."""

    planned: int | None
    skipped: int


def catch_up(schedule: Schedule, planned: int, now: int) -> CaughtUp:
    """Apply a schedule's misfire policy to the firing that was planned for an instant and is looked at only now.

    A firing within the grace is none of its business. `all` fires every one, `coalesce` the latest one for all, `skip`
    goes on with the first that is not a misfire itself.
    """
    bounds = schedule.bounds or NO_BOUNDS
    on_time = now - planned <= bounds.misfire_grace
    if on_time or bounds.misfire == "all" or isinstance(schedule.trigger, Once | FixedDelay | Backoff):
        return CaughtUp(planned, 0)  # neither of these three has more than one firing waiting
    if bounds.misfire == "coalesce":
        return _last_until(schedule, planned, now)
    missed = _last_until(schedule, planned, now - bounds.misfire_grace - 1)
    following = next_planned(schedule, missed.planned or planned, attempt=1)
    return CaughtUp(following, missed.skipped + 1)


def _last_until(schedule: Schedule, planned: int, until: int) -> CaughtUp:
    """Find the last firing at or before an instant, and how many lie between `planned` and it."""
    trigger = schedule.trigger
    if isinstance(trigger, FixedRate):
        end = (schedule.bounds or NO_BOUNDS).end
        last = until if end is None else min(until, end)
        steps = max(0, last - planned) // trigger.interval
        return CaughtUp(within(schedule.bounds, planned + steps * trigger.interval), steps)
    skipped = 0
    while (following := next_planned(schedule, planned, attempt=1)) is not None and following <= until:
        planned = following
        skipped += 1
        if skipped == MOST_COUNTED:
            return _last_of_many(schedule, planned, until, skipped)
    return CaughtUp(planned, skipped)


def _last_of_many(schedule: Schedule, planned: int, until: int, skipped: int) -> CaughtUp:
    """Halve the distance to the last firing at or before `until`; the firings passed over count as one each time."""
    low, high = planned, until
    while low < high:
        middle = (low + high + 1) // 2
        following = next_planned(schedule, middle - 1, attempt=1)
        if following is not None and following <= until:
            low = following
            skipped += 1
        else:
            high = middle - 1
    return CaughtUp(low, skipped)
