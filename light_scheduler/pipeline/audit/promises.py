"""Input of a replay (commands and history events) and its output (promised deliveries)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from light_scheduler.model import Command, DeadLetterCause, Entry, EventType, HistoryEvent

from .faults import RecordId


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A command that is invalid or exceeds a limit.

    `may_be_report`: it may be a lane's report to another lane. A forged report is rejected, and the history says so.
    """

    partition: int
    offset: int
    recorded_at: int
    may_be_report: bool = False


Asked = Command | Refused


Name = tuple[int | None, int | None, int | None, int | None]
"""(due, attempt, version, sequence): identifies a message among those of a schedule, while it is pending."""


class HistoryRecord(NamedTuple):
    """A history event, and its place."""

    event: HistoryEvent
    place: RecordId


class Promise(NamedTuple):
    """A delivery according to the history, or with a `cause` a dead letter.

    `subject` is the schedule as the firing saw it, None if the replay had lost track of it. Since `ready_at` (UTC epoch
    ms) only the scheduler held it up.
    """

    recorded: HistoryRecord
    subject: Entry | None
    ready_at: int | None
    cause: DeadLetterCause | None = None

    @property
    def name(self) -> Name:
        return name_of(self.recorded.event)


class Ending(NamedTuple):
    """The end of a definition: it was replaced or removed at an instant (UTC epoch ms)."""

    at: int
    event: EventType
    version: int


def asked_by(entry: Entry, commands_topic: str) -> RecordId | None:
    """Return the place of the command that a pending firing comes from; None if another one has changed its time."""
    schedule, arrival = entry.schedule, entry.progress.arrival
    is_first = arrival < 0 or arrival == schedule.source_offset  # below 0, it was imported
    place = RecordId(commands_topic, schedule.source_partition, schedule.source_offset)
    return place if is_first and entry.progress.attempt == 1 else None


def name_of(event: HistoryEvent) -> Name:
    """Name the message of a history event."""
    return event.due, event.attempt, event.version, event.sequence
