"""Overdue firings of a schedule at an instant: decides which of them are delivered. Instants are UTC epoch ms."""

from __future__ import annotations

import msgspec

from light_scheduler.engine.misfire import catch_up
from light_scheduler.engine.progress import planned_at, planned_for, run_ended
from light_scheduler.engine.recurrence import next_of
from light_scheduler.model import NEVER, NO_BOUNDS, Cron, Entry, FixedDelay, FixedRate

from .cron_times import times_between

replace = msgspec.structs.replace


def caught_up(entry: Entry, now: int) -> Entry:
    """Return a schedule as it continues at an instant: its misfire policy has decided on missed firings, and a run of a
    fixed delay that waits for its completion is completed. Firings beyond their time to live are not delivered."""
    schedule, progress = entry.schedule, entry.progress
    if progress.paused:
        return entry
    if isinstance(schedule.trigger, FixedDelay) and progress.due == NEVER and progress.queued is None:
        progress = run_ended(schedule, replace(progress, awaited=()), now)
    if progress.due < now:
        progress = catch_up(schedule, progress, now).progress
    return past_expired(entry if progress is entry.progress else Entry(schedule, progress), now)


def wanted_from(entry: Entry, now: int) -> int:
    """Return the earliest due time of firings that can still be delivered at an instant or later, by their time to
    live."""
    return 0 if entry.schedule.ttl is None else now - entry.schedule.ttl


def past_expired(entry: Entry, now: int) -> Entry:
    """Return a schedule after planned firings whose time to live has passed, without iterating over them.

    Some may be left: jitter may have moved them into the time when they can be delivered.
    """
    schedule, progress = entry.schedule, entry.progress
    trigger, bounds, wanted_since = schedule.trigger, schedule.bounds or NO_BOUNDS, wanted_from(entry, now)
    if progress.due >= wanted_since or not isinstance(trigger, FixedRate | Cron):
        return entry
    planned = planned_at(progress)
    following = next_of(trigger, max(planned, wanted_since - bounds.jitter - 1))
    passed = _passed(trigger, planned, following, bounds.max_firings)
    after = replace(progress, sequence=progress.sequence + passed)
    return Entry(schedule, planned_for(schedule, after, following, progress.due + passed))


def _passed(trigger: FixedRate | Cron, planned: int, following: int | None, most: int | None) -> int:
    """Return the number of skipped firings between two planned times. `planned` may be before a rate's first firing or
    between the times of an expression. Those of an expression are counted only if the number of firings is limited."""
    if isinstance(trigger, FixedRate):
        assert following is not None, "a rate has no end"
        return -(-(following - planned) // trigger.interval)
    if following is None or most is None:
        return 0
    return 1 + times_between(trigger, planned, following, most)
