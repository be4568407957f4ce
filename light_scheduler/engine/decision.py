"""The decision on a command, and firings that are skipped."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, EventType, Outcome, Progress


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """Firings of a schedule that are not delivered: how many, and the first one as its progress names it."""

    progress: Progress
    count: int
    reason: str


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision on a command.

    `entry` is the pending schedule afterwards (None: there is none). `event` is the history event; without one, nothing
    has changed. `subject` is the schedule that the answer is about, as it was at the event. `finished` says why the
    series has ended, which the history also records (None: it has not). Before the event, it records the firings of the
    schedule as it was that are `skipped` (None: there are none).
    """

    outcome: Outcome
    entry: Entry | None
    event: EventType | None = None
    subject: Entry | None = None
    reason: str | None = None
    finished: str | None = None
    skipped: Skipped | None = None
