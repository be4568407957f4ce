"""Computes when a schedule would fire."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from light_scheduler.model import NEVER, Entry, ScheduleCommand

from .commands import decide
from .limits import NO_LIMITS
from .progress import after_planned, release_of, run_ended


def preview(command: ScheduleCommand, count: int) -> list[int]:
    """Return the next due times (UTC epoch ms), at most `count`, of a schedule accepted at `command.recorded_at`.

    Assumes that every run of a fixed-delay series is completed when it is delivered. Raises InvalidCommand.
    """
    return list(islice(first_due_times(command), count))


def first_due_times(command: ScheduleCommand) -> Iterator[int]:
    """Yield the due times of `preview`, possibly without end. Raises InvalidCommand at the first one.

    Ignores the command's `expected_version`.
    """
    entry = decide(replace(command, expected_version=None), None, command.recorded_at, NO_LIMITS).entry
    if entry is not None:
        for due, _ in deliveries(entry, command.recorded_at):
            yield due


def deliveries(entry: Entry, since: int) -> Iterator[tuple[int, int]]:
    """Yield the due time and delivery time of a pending schedule's planned firings, from an instant on.

    Each is delivered within its window, and not before an earlier firing. Assumes that every run of a fixed-delay
    series is completed when it is delivered.
    """
    schedule, progress, at = entry.schedule, entry.progress, since
    while progress.due != NEVER:
        at = max(at, release_of(schedule, progress))
        yield progress.due, at
        progress = run_ended(schedule, after_planned(schedule, progress, at), at)
