"""The misfire policy: which of the firings that a series has missed are delivered. Instants are UTC epoch ms."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model import NO_BOUNDS, Backoff, Cron, FixedDelay, FixedRate, Once, Progress, Schedule

from .progress import is_misfire, planned_at, planned_for
from .recurrence import next_of, next_planned, times_between

MOST_STEPS = 5_000
"""Firings that jitter may have moved that are looked at one by one, at up to 0.1 ms each.

Of a series with n firings within its jitter, about the square root of 2 n are looked at before one is not missed.
"""

_FEW = 50
"""Missed times of a cron expression that are passed over one by one: counting them costs as much."""


class CaughtUp(NamedTuple):
    """Where a series goes on after an outage: its progress with the firing that is next, and how many before that are
    not delivered. `steps` is what finding out took.
    """

    progress: Progress
    skipped: int = 0
    steps: int = 0


class _Passed(NamedTuple):
    """The last firing, as planned, that was passed over to; how many were before it, and in how many steps."""

    planned: int
    skipped: int = 0
    steps: int = 0


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


def times_until(schedule: Schedule, planned: int, until: int) -> int:
    """Return how many firings of a fixed rate or a cron are planned from one of them until an instant."""
    return 0 if planned > until else 1 + _last_until(schedule, planned, until).skipped


def _first_on_time_or_latest(schedule: Schedule, progress: Progress, passed: _Passed, now: int) -> CaughtUp:
    step = 0
    while step < MOST_STEPS and (following := _after(schedule, progress, planned_at(progress))).due <= now:
        progress = following
        step += 1
        if not is_misfire(schedule, progress, now):
            break
    return CaughtUp(progress, passed.skipped + step, passed.steps + step)


def _first_on_time(schedule: Schedule, progress: Progress, passed: _Passed, now: int) -> CaughtUp:
    step, more = 0, 0
    while is_misfire(schedule, progress, now):
        planned = planned_at(progress)
        if step == MOST_STEPS:
            last = _last_until(schedule, planned, now)
            planned, more = last.planned, last.skipped
        progress = _after(schedule, progress, planned)
        step += 1
    return CaughtUp(progress, passed.skipped + step + more, passed.steps + step)


def _after(schedule: Schedule, progress: Progress, planned: int) -> Progress:
    return planned_for(schedule, progress, next_planned(schedule, planned, attempt=1), progress.due + 1)


def _last_until(schedule: Schedule, planned: int, until: int) -> _Passed:
    """Find the last firing at or before an instant, and how many lie between `planned` and it."""
    trigger = schedule.trigger
    end = (schedule.bounds or NO_BOUNDS).end
    until = until if end is None else min(until, end)
    if isinstance(trigger, FixedRate):
        count = max(0, until - planned) // trigger.interval
        return _Passed(planned + count * trigger.interval, count)
    assert isinstance(trigger, Cron), "no other trigger has more than one firing waiting"
    steps = 0
    while (following := next_of(trigger, planned)) is not None and following <= until:
        if steps == _FEW:
            last = _last_of_many(trigger, following, until)
            return _Passed(last.planned, steps + 1 + last.skipped, steps + 1 + last.steps)
        planned = following
        steps += 1
    return _Passed(planned, steps, steps)


def _last_of_many(trigger: Cron, planned: int, until: int) -> _Passed:
    """Find the last time of an expression by halving the distance to it, and count those before it by days."""
    low, high, steps = planned, until, 0
    while low < high:
        middle = (low + high + 1) // 2
        following = next_of(trigger, middle - 1)
        steps += 1
        if following is not None and following <= until:
            low = following
        else:
            high = middle - 1
    return _Passed(low, times_between(trigger, planned, low), steps)
