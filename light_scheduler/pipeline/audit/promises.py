"""What a replay is given, line by line, and what it makes of it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from light_scheduler.model import Command, DeadLetterCause, Entry, EventType, HistoryEvent

from .faults import RecordId


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A command that cannot be understood, or passes a limit.

    `may_be_report`: or it is what a lane reports to another one. A forged report is rejected, which history tells.
    """

    partition: int
    offset: int
    recorded_at: int
    may_be_report: bool = False


Asked = Command | Refused


Name = tuple[int | None, int | None, int | None, int | None]
"""(due, attempt, version, sequence): what tells the messages of a schedule apart, while it lives."""


class Told(NamedTuple):
    """A line of history, and where it is."""

    event: HistoryEvent
    place: RecordId


class Promise(NamedTuple):
    """What history says was delivered, or put among the dead letters if `cause` is given.

    `subject` is the schedule as the firing saw it, None if the replay had lost track of it. `ready_at` (UTC epoch ms)
    is since when only the scheduler was in its way.
    """

    told: Told
    subject: Entry | None
    ready_at: int | None
    cause: DeadLetterCause | None = None

    @property
    def name(self) -> Name:
        return name_of(self.told.event)


class Ending(NamedTuple):
    """That a definition was replaced or taken away at an instant (UTC epoch ms)."""

    at: int
    event: EventType
    version: int


def name_of(event: HistoryEvent) -> Name:
    """Name the message that a line of history speaks of."""
    return event.due, event.attempt, event.version, event.sequence
