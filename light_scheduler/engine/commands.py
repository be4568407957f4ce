"""What a command does to the schedule it names."""

from __future__ import annotations

import msgspec

from light_scheduler.model import (
    CancelCommand,
    Command,
    Entry,
    EventType,
    Once,
    Outcome,
    Progress,
    Schedule,
    ScheduleCommand,
)

from .limits import Limits
from .timing import first_due


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What follows from a command.

    `entry` is what is pending afterwards (None: nothing); `event` is what history records, and only with an event has
    anything changed. `subject` is the schedule that the answer speaks of.
    """

    outcome: Outcome
    entry: Entry | None
    event: EventType | None = None
    subject: Entry | None = None
    reason: str | None = None


def decide(command: Command, current: Entry | None, now: int, limits: Limits) -> Decision:
    """Decide a command against the schedule of its id, at an instant (UTC epoch ms).

    Raises InvalidCommand for what must be rejected.
    """
    limits.check(command)
    if command.expected_version is not None and (conflict := _version_conflict(command, current)):
        return conflict
    if isinstance(command, CancelCommand):
        return _cancel(current)
    return _schedule(command, current, now)


def _schedule(command: ScheduleCommand, current: Entry | None, now: int) -> Decision:
    if current is not None and command.on_conflict != "replace":
        if command.on_conflict == "keep":
            return Decision(Outcome.KEPT, current, subject=current)
        return Decision(
            Outcome.CONFLICT, current, subject=current, reason="a schedule of this id exists and on-conflict is fail"
        )
    due = first_due(command, now)
    entry = Entry(
        Schedule(
            command.tenant,
            command.id,
            1 if current is None else current.schedule.version + 1,
            Once(due),
            command.target,
            command.payload,
            command.headers,
            source_partition=command.partition,
            source_offset=command.offset,
            accepted_at=now,
            ttl=command.ttl,
            priority=command.priority,
            labels=command.labels,
        ),
        Progress(due, command.offset),
    )
    if current is None:
        return Decision(Outcome.SCHEDULED, entry, EventType.SCHEDULED, entry)
    return Decision(Outcome.UPDATED, entry, EventType.UPDATED, entry)


def _cancel(current: Entry | None) -> Decision:
    if current is None:
        return Decision(Outcome.NOT_FOUND, None, reason="there is no pending schedule of this id")
    return Decision(Outcome.CANCELLED, None, EventType.CANCELLED, current)


def _version_conflict(command: Command, current: Entry | None) -> Decision | None:
    if current is None:
        if isinstance(command, CancelCommand):
            return None
        return Decision(
            Outcome.CONFLICT, None, reason=f"version {command.expected_version} was expected; there is no such schedule"
        )
    if current.schedule.version == command.expected_version:
        return None
    return Decision(
        Outcome.CONFLICT,
        current,
        subject=current,
        reason=f"version {command.expected_version} was expected; it is {current.schedule.version}",
    )
