"""The decision on a command, and skipped firings."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, EventType, Outcome, Progress


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """Firings of a schedule that are not delivered: their number, and the progress of the first one."""

    progress: Progress
    count: int
    reason: str


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision on a command.

    `entry` is the pending schedule afterwards; None if there is none. `event` is the history event; None if nothing has
    changed. `subject` is the schedule for the answer and the event. `finished` is the reason why the series has ended,
    if it has, which the history records after the event. `skipped` are firings of the earlier definition that are not
    delivered, if any, which the history records before the event.
    """

    outcome: Outcome
    entry: Entry | None
    event: EventType | None = None
    subject: Entry | None = None
    reason: str | None = None
    finished: str | None = None
    skipped: Skipped | None = None
