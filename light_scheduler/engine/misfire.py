"""The misfire policy: which of the firings that a series has missed are delivered. Instants are UTC epoch ms."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model import NO_BOUNDS, Backoff, FixedDelay, FixedRate, Once, Progress, Schedule

from .progress import is_misfire, planned_at, planned_for
from .recurrence import next_planned

MOST_STEPS = 5_000
"""Missed firings that are passed over one by one, at up to 0.1 ms each, before the search jumps ahead."""


class CaughtUp(NamedTuple):
    """Where a series goes on after an outage: its progress with the firing that is next, and how many before that are
    not delivered. `steps` is what finding out took; with many, `skipped` is the least that it can be.
    """

    progress: Progress
    skipped: int = 0
    steps: int = 0
    is_exact: bool = True


class _Passed(NamedTuple):
    """The last firing, as planned, that was passed over to; how many were before it, and in how many steps."""

    planned: int
    skipped: int = 0
    steps: int = 0
    is_exact: bool = True


def catch_up(schedule: Schedule, progress: Progress, now: int) -> CaughtUp:
    """Apply a schedule's misfire policy to its next planned firing, which is looked at only now.

    A firing within its window and grace is none of its business, nor is one that was in time and refused by its target.
    `all` fires every one. `skip` goes on with the first that is not a misfire itself, and so does `coalesce` if that
    one is due: it stands for all that were missed. If none is, `coalesce` fires the latest misfire.
    """
    bounds = schedule.bounds or NO_BOUNDS
    was_refused = progress.refusals > 0 or progress.retry_at is not None  # a trigger has the latter alone
    if not is_misfire(schedule, progress, now) or was_refused or bounds.misfire == "all":
        return CaughtUp(progress)
    if isinstance(schedule.trigger, Once | FixedDelay | Backoff):
        return CaughtUp(progress)  # neither has more than one firing waiting
    # What was planned until then is a misfire, wherever its jitter has put it; after it, each is looked at.
    surely = now - bounds.jitter - (bounds.window + bounds.misfire_grace + 1)
    passed = _last_until(schedule, planned_at(progress), surely)
    if passed.skipped:
        progress = planned_for(schedule, progress, passed.planned, progress.due)
    if bounds.misfire == "skip":
        return _first_on_time(schedule, progress, passed, now)
    return _first_on_time_or_latest(schedule, progress, passed, now)


def _first_on_time_or_latest(schedule: Schedule, progress: Progress, passed: _Passed, now: int) -> CaughtUp:
    step = 0
    while step < MOST_STEPS and (following := _after(schedule, progress, planned_at(progress))).due <= now:
        progress = following
        step += 1
        if not is_misfire(schedule, progress, now):
            break
    return CaughtUp(progress, passed.skipped + step, passed.steps + step, passed.is_exact)


def _first_on_time(schedule: Schedule, progress: Progress, passed: _Passed, now: int) -> CaughtUp:
    step = 0
    while is_misfire(schedule, progress, now):
        if step == MOST_STEPS:
            progress = _after(schedule, progress, now)
            return CaughtUp(progress, passed.skipped + step, passed.steps + step, is_exact=False)
        progress = _after(schedule, progress, planned_at(progress))
        step += 1
    return CaughtUp(progress, passed.skipped + step, passed.steps + step, passed.is_exact)


def _after(schedule: Schedule, progress: Progress, planned: int) -> Progress:
    return planned_for(schedule, progress, next_planned(schedule, planned, attempt=1), progress.due + 1)


def _last_until(schedule: Schedule, planned: int, until: int) -> _Passed:
    """Find the last firing at or before an instant, and how many lie between `planned` and it."""
    trigger = schedule.trigger
    if isinstance(trigger, FixedRate):
        end = (schedule.bounds or NO_BOUNDS).end
        count = max(0, (until if end is None else min(until, end)) - planned) // trigger.interval
        return _Passed(planned + count * trigger.interval, count)
    steps = 0
    while (following := next_planned(schedule, planned, attempt=1)) is not None and following <= until:
        planned = following
        steps += 1
        if steps == MOST_STEPS:
            return _last_of_many(schedule, planned, until, steps)
    return _Passed(planned, steps, steps)


def _last_of_many(schedule: Schedule, planned: int, until: int, steps: int) -> _Passed:
    """Halve the distance to the last firing at or before `until`; the firings passed over count as one each time."""
    low, high, count = planned, until, steps
    while low < high:
        middle = (low + high + 1) // 2
        following = next_planned(schedule, middle - 1, attempt=1)
        steps += 1
        if following is not None and following <= until:
            low = following
            count += 1
        else:
            high = middle - 1
    return _Passed(low, count, steps, is_exact=False)
