"""What follows from a command."""

from __future__ import annotations

import msgspec

from light_scheduler.model import Entry, EventType, Outcome


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What follows from a command.

    `entry` is what is pending afterwards (None: nothing); `event` is what history records, and only with an event has
    anything changed. `subject` is the schedule that the answer speaks of, as the event saw it; `finished` says that
    history also records the end of the series.
    """

    outcome: Outcome
    entry: Entry | None
    event: EventType | None = None
    subject: Entry | None = None
    reason: str | None = None
    finished: bool = False
