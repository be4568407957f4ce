"""Decides when a command's schedule is first due, and how to handle a due time in the past."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.durations import distance, format_duration
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    FIRE_BACKLOG,
    FIRE_PAST,
    LATEST_INSTANT,
    NO_BOUNDS,
    REJECT_PAST,
    After,
    Backoff,
    Bounds,
    Cron,
    Once,
    RescheduleCommand,
    ScheduleCommand,
    Series,
    Trigger,
)

from .cron import CronError
from .recurrence import anchored, first_planned

SECOND_MS = 1_000
"""For `FIRE_BACKLOG`: a due time less than this before the command was recorded is on time. A command that is read more
than this after it was recorded has waited in the log.
"""

MAX_CRON_CHARACTERS = 1_000
MAX_CRON_ALTERNATIVES = 32
"""Limit of a cron4j expression. Each firing searches all alternatives for their next time, up to 0.1 ms for each."""


class Begun(NamedTuple):
    """The trigger to store, and its first planned time (UTC epoch ms)."""

    trigger: Trigger
    planned: int


def begin(command: ScheduleCommand | RescheduleCommand, now: int) -> Begun:
    """Return the beginning of a command's time rule, at `now` (UTC epoch ms).

    A delay counts from when the command was recorded. So neither time in the log nor a sender's clock that is ahead of
    the scheduler's adds to it. Whether an instant is in the past is also relative to when the command was recorded, so
    a command that was sent in time is never refused because the workers were down. Raises InvalidCommand if the
    command's `on_past` refuses it, a delay ends after the year 9999, or a series never fires.
    """
    recorded_at = recorded_at_of(command, now)
    timing = command.timing
    if isinstance(timing, Once):
        if command.on_past is not None:
            late = recorded_at - timing.at
            _check_past(late, now - recorded_at, command.on_past)
            if late > 0 and command.on_past == FIRE_PAST:
                return Begun(Once(timing.at, late=True), timing.at)
        return Begun(timing, timing.at)
    if isinstance(timing, After):
        due = recorded_at + timing.delay
        if due > LATEST_INSTANT:
            raise InvalidCommand("schedule-after", "ends after the year 9999")
        return Begun(Once(due), due)
    bounds = command.bounds or NO_BOUNDS
    trigger = anchored(timing, bounds, recorded_at)
    if isinstance(trigger, Cron):
        _check_size(trigger)
    try:
        planned = first_planned(trigger, bounds, recorded_at, command.tenant, command.id)
    except CronError as error:
        raise InvalidCommand(f"schedule-{error.field}", str(error)) from None
    if planned is None:
        raise _never_fires(trigger, bounds)
    return Begun(trigger, planned)


def recorded_at_of(command: ScheduleCommand | RescheduleCommand, now: int) -> int:
    """Return when a command was recorded, by its timestamp, but not later than `now`."""
    return min(command.recorded_at, now) if command.recorded_at > 0 else now


def _never_fires(trigger: Series, bounds: Bounds) -> InvalidCommand:
    if bounds.end is None and not isinstance(trigger, Cron):
        field = "schedule-backoff" if isinstance(trigger, Backoff) else "schedule-every"
        return InvalidCommand(field, "first fires after the year 9999")
    field = "schedule-cron" if bounds.end is None else "schedule-end"
    return InvalidCommand(field, "leaves no instant at which the schedule could fire")


def _check_size(cron: Cron) -> None:
    """Refuse expressions that would take long to compile or to search, before trying it."""
    if len(cron.expression) > MAX_CRON_CHARACTERS:
        reason = f"has {len(cron.expression)} characters; at most {MAX_CRON_CHARACTERS} are allowed"
        raise InvalidCommand("schedule-cron", reason)
    alternatives = cron.expression.count("|") + 1
    if alternatives > MAX_CRON_ALTERNATIVES:
        reason = f"has {alternatives} alternatives; at most {MAX_CRON_ALTERNATIVES} are allowed"
        raise InvalidCommand("schedule-cron", reason)


def _check_past(late: int, waited: int, on_past: int) -> None:
    is_late_for_backlog = on_past == FIRE_BACKLOG and late >= SECOND_MS and waited <= SECOND_MS
    if is_late_for_backlog or (on_past == REJECT_PAST and late > 0):
        raise InvalidCommand("schedule-at", f"was {distance(late)} in the past when it arrived")
    if late > on_past >= 0:
        grace = format_duration(on_past)
        raise InvalidCommand("schedule-at", f"was {distance(late)} in the past when it arrived; the grace is {grace}")
