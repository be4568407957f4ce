"""What a command does to the schedule it names."""

from __future__ import annotations

import msgspec

from light_scheduler.model import (
    NEVER,
    Acknowledgement,
    Command,
    CompleteCommand,
    Entry,
    EventType,
    FixedDelay,
    Once,
    Outcome,
    Progress,
    RescheduleCommand,
    Schedule,
    ScheduleCommand,
    Trigger,
)

from .completion import complete
from .decision import Decision
from .limits import Limits
from .progress import planned_for, standing
from .timing import begin

DEFAULT_COMPLETION_TIMEOUT_MS = 300_000
"""How long a fixed-delay series that says nothing else waits for a completion before it goes on."""

replace = msgspec.structs.replace


def decide(command: Command, current: Entry | None, now: int, limits: Limits) -> Decision:
    """Decide a command against the schedule of its id, at an instant (UTC epoch ms).

    Raises InvalidCommand for what must be rejected.
    """
    limits.check(command)
    if command.expected_version is not None and (conflict := _version_conflict(command, current)):
        return conflict
    if isinstance(command, ScheduleCommand):
        return _schedule(command, current, now)
    if current is None:
        return Decision(Outcome.NOT_FOUND, None, reason="there is no pending schedule of this id")
    if isinstance(command, CompleteCommand):
        return complete(command, current, now)
    if isinstance(command, RescheduleCommand):
        return _reschedule(command, current, now)
    match command.name:
        case "cancel":
            return Decision(Outcome.CANCELLED, None, EventType.CANCELLED, current)
        case "pause":
            return _paused(current, Outcome.PAUSED, EventType.PAUSED, paused=True)
        case "resume":
            return _paused(current, Outcome.RESUMED, EventType.RESUMED, paused=False)
        case "trigger":
            return _triggered(current, now)


def _schedule(command: ScheduleCommand, current: Entry | None, now: int) -> Decision:
    if current is not None and command.on_conflict != "replace":
        if command.on_conflict == "keep":
            return Decision(Outcome.KEPT, current, subject=current)
        return Decision(
            Outcome.CONFLICT, current, subject=current, reason="a schedule of this id exists and on-conflict is fail"
        )
    trigger, planned = begin(command, now)
    schedule = Schedule(
        command.tenant,
        command.id,
        1 if current is None else current.schedule.version + 1,
        trigger,
        command.target,
        command.payload,
        command.headers,
        command.partition,
        command.offset,
        now,
        command.ttl,
        command.priority,
        command.labels,
        command.bounds,
        _acknowledgement(trigger, command.acknowledgement),
    )
    progress = Progress(planned, command.offset)
    entry: Entry | None = Entry(schedule, progress)
    if command.bounds is not None or command.paused:
        entry = standing(schedule, planned_for(schedule, replace(progress, paused=command.paused), planned))
    if current is None:
        return Decision(Outcome.SCHEDULED, entry, EventType.SCHEDULED, entry)
    return Decision(Outcome.UPDATED, entry, EventType.UPDATED, entry)


def _paused(current: Entry, outcome: Outcome, event: EventType, *, paused: bool) -> Decision:
    if current.progress.paused is paused:
        return Decision(outcome, current, subject=current)
    entry = standing(current.schedule, replace(current.progress, paused=paused))
    return Decision(outcome, entry, event, entry)


def _triggered(current: Entry, now: int) -> Decision:
    """Fire now: a one-shot in place of its time, a series besides its times, even one that is paused."""
    schedule, progress = current.schedule, current.progress
    # Two firings never share an instant: it is what names them.
    taken = {progress.due, *progress.triggered, *(each.due for each in progress.awaited)}
    due = next(instant for instant in range(now, now + len(taken) + 1) if instant not in taken)
    asked = replace(progress, triggered=(*progress.triggered, due), refusals=0, retry_at=None)
    if isinstance(schedule.trigger, Once):
        asked = replace(asked, due=NEVER, planned=None)
    entry = standing(schedule, asked)
    return Decision(Outcome.TRIGGERED, entry, EventType.UPDATED, entry, "triggered: fires at once")


def _reschedule(command: RescheduleCommand, current: Entry, now: int) -> Decision:
    trigger, planned = begin(command, now)
    schedule = replace(
        current.schedule,
        version=current.schedule.version + 1,
        trigger=trigger,
        accepted_at=now,
        bounds=command.bounds,
        acknowledgement=_acknowledgement(trigger, current.schedule.acknowledgement),
    )
    progress = Progress(planned, command.offset, paused=current.progress.paused)
    entry = standing(schedule, planned_for(schedule, progress, planned))
    return Decision(Outcome.RESCHEDULED, entry, EventType.UPDATED, entry, "rescheduled")


def _acknowledgement(trigger: Trigger, asked: Acknowledgement | None) -> Acknowledgement | None:
    if asked is None and isinstance(trigger, FixedDelay):
        return Acknowledgement(DEFAULT_COMPLETION_TIMEOUT_MS, max_attempts=1)
    return asked


def _version_conflict(command: Command, current: Entry | None) -> Decision | None:
    if current is None:
        if not isinstance(command, ScheduleCommand):
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
