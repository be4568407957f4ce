"""When a schedule is first due, and what is done about one that is in the past when it arrives."""

from __future__ import annotations

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import LATEST_INSTANT, REJECT_PAST, After, ScheduleCommand


def first_due(command: ScheduleCommand, now: int) -> int:
    """Return the instant (UTC epoch ms) at which a command's schedule is first due.

    A delay counts from when the command was recorded, so time that it waited in the log is not added; a sender's clock
    that is ahead of the scheduler's does not add to it either. Whether an instant is in the past is judged by when the
    command was recorded too: one that was in time when it was sent is never refused because the workers were down.
    Raises InvalidCommand for what the command's own `on_past` refuses, and for a delay that ends after the year 9999.
    """
    recorded_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    timing = command.timing
    if isinstance(timing, After):
        due = recorded_at + timing.delay
        if due > LATEST_INSTANT:
            raise InvalidCommand("schedule-after", "ends after the year 9999")
        return due
    if command.on_past is not None:
        late = recorded_at - timing.at
        if command.on_past == REJECT_PAST and late > 0:
            raise InvalidCommand("schedule-at", f"was {late} ms in the past when it arrived")
        if late > command.on_past >= 0:
            raise InvalidCommand(
                "schedule-at", f"was {late} ms in the past when it arrived; the grace is {command.on_past} ms"
            )
    return timing.at
