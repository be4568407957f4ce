"""The misfire policy: decides which missed firings of a series are delivered. Instants are UTC epoch ms."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model import NO_BOUNDS, Backoff, Cron, FixedDelay, FixedRate, Once, Progress, Schedule

from .progress import is_misfire, planned_at, planned_for
from .recurrence import next_of, next_planned, times_between

MOST_STEPS = 5_000
"""Maximum number of firings with jitter that are checked one by one, at up to 0.1 ms each.

In a series with n firings within its jitter, about sqrt(2 n) are checked before one that is not missed is found.
"""

_FEW = 50
"""Missed times of a cron expression that are visited one by one, since counting them is not faster."""


class CaughtUp(NamedTuple):
    """The continuation of a series after an outage: its progress with the next firing, and the number of firings before
    it that are not delivered. `steps` is the cost of the search.
    """

    progress: Progress
    skipped: int = 0
    steps: int = 0


class _Passed(NamedTuple):
    """The planned time of the firing found by a search, the number of firings before it, and the cost in steps."""

    planned: int
    skipped: int = 0
    steps: int = 0


def catch_up(schedule: Schedule, progress: Progress, now: int) -> CaughtUp:
    """Apply a schedule's misfire policy to its next planned firing, which may be late.

    It does not apply to a firing within its window and grace, nor to one that was on time and refused by its target.
    `all` fires every missed firing. `skip` continues with the first firing that is not a misfire. So does `coalesce` if
    that one is due, which then stands for all missed firings. Otherwise, `coalesce` fires the latest misfire.
    """
    bounds = schedule.bounds or NO_BOUNDS
    was_refused = progress.refusals > 0 or progress.retry_at is not None  # after a trigger, only the latter is set
    if not is_misfire(schedule, progress, now) or was_refused or bounds.misfire == "all":
        return CaughtUp(progress)
    if isinstance(schedule.trigger, Once | FixedDelay | Backoff):
        return CaughtUp(progress)  # these never have more than one waiting firing
    # Firings planned until then are misfires with any jitter. Later ones are checked individually.
    surely = now - bounds.jitter - (bounds.window + bounds.misfire_grace + 1)
    passed = _last_until(schedule, planned_at(progress), surely)
    if passed.skipped:
        progress = planned_for(schedule, progress, passed.planned, progress.due)
    if bounds.misfire == "skip":
        return _first_on_time(schedule, progress, passed, now)
    return _first_on_time_or_latest(schedule, progress, passed, now)


def times_until(schedule: Schedule, planned: int, until: int) -> int:
    """Return how many firings of a fixed rate or a cron are planned from one of them until an instant."""
    return 0 if planned > until else 1 + times_after(schedule, planned, planned, until)


def times_after(schedule: Schedule, planned: int, after: int, until: int) -> int:
    """Return how many firings of a fixed rate or a cron are planned after an instant, and at or before another one.

    `planned` is one of them that is not after the first instant. Nothing goes from one to the next.
    """
    trigger, end = schedule.trigger, (schedule.bounds or NO_BOUNDS).end
    until = until if end is None else min(until, end)
    if until <= after:
        return 0
    if isinstance(trigger, FixedRate):
        return (until - planned) // trigger.interval - (after - planned) // trigger.interval
    assert isinstance(trigger, Cron), "no other trigger has more than one firing waiting"
    return times_between(trigger, after, until)


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
    """Find the last firing at or before an instant, and the number of firings from `planned` before it."""
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
    """Find the last time of an expression by bisection, and count the times before it by days."""
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
