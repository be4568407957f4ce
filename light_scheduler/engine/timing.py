"""When a command's schedule is first due, and what is done about one that is in the past when it arrives."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    LATEST_INSTANT,
    NO_BOUNDS,
    REJECT_PAST,
    After,
    Once,
    RescheduleCommand,
    ScheduleCommand,
    Trigger,
)

from .cron import CronError
from .recurrence import anchored, first_planned


class Begun(NamedTuple):
    """The trigger that a schedule keeps, and when it is first planned (UTC epoch ms)."""

    trigger: Trigger
    planned: int


def begin(command: ScheduleCommand | RescheduleCommand, now: int) -> Begun:
    """Return how a command's time rule begins at an instant (UTC epoch ms).

    A delay counts from when the command was recorded, so time that it waited in the log is not added; a sender's clock
    that is ahead of the scheduler's does not add to it either. Whether an instant is in the past is judged by when the
    command was recorded too: one that was in time when it was sent is never refused because the workers were down.
    Raises InvalidCommand for what the command's own `on_past` refuses, for a delay that ends after the year 9999, and
    for a series that never fires.
    """
    recorded_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    timing = command.timing
    if isinstance(timing, Once):
        if command.on_past is not None:
            _check_past(recorded_at - timing.at, command.on_past)
        return Begun(timing, timing.at)
    if isinstance(timing, After):
        due = recorded_at + timing.delay
        if due > LATEST_INSTANT:
            raise InvalidCommand("schedule-after", "ends after the year 9999")
        return Begun(Once(due), due)
    bounds = command.bounds or NO_BOUNDS
    trigger = anchored(timing, bounds, recorded_at)
    try:
        planned = first_planned(trigger, bounds, recorded_at, command.tenant, command.id)
    except CronError as error:
        raise InvalidCommand(f"schedule-{error.field}", str(error)) from None
    if planned is None:
        raise InvalidCommand("schedule-end" if bounds.end is not None else "schedule-cron", "leaves no time to fire at")
    return Begun(trigger, planned)


def _check_past(late: int, on_past: int) -> None:
    if on_past == REJECT_PAST and late > 0:
        raise InvalidCommand("schedule-at", f"was {late} ms in the past when it arrived")
    if late > on_past >= 0:
        raise InvalidCommand("schedule-at", f"was {late} ms in the past when it arrived; the grace is {on_past} ms")
