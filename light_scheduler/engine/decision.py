"""The decision on a command."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, EventType, Outcome


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision on a command.

    `entry` is the pending schedule afterwards (None: there is none). `event` is the history event; without one, nothing
    has changed. `subject` is the schedule that the answer is about, as it was at the event. `finished` says why the
    series has ended, which the history also records (None: it has not).
    """

    outcome: Outcome
    entry: Entry | None
    event: EventType | None = None
    subject: Entry | None = None
    reason: str | None = None
    finished: str | None = None
