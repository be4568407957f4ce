"""The effect of a bulk command on each schedule that it selects.

It takes effect at its arrival, however long it takes to visit all schedules: schedules that arrive later are not
affected, and later changes of earlier schedules come after it. So it is applied early to a schedule that is about to
change, and `Progress.bulk_offset` records that.
"""

from __future__ import annotations

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    BulkCommand,
    BulkPart,
    BulkTotal,
    Entry,
    EventType,
    HistoryEvent,
    Outcome,
    RescheduleCommand,
    Result,
    Selection,
)
from light_scheduler.model.arrival import offset_of

from .commands import decide
from .decision import Decision
from .limits import Limits
from .timing import begin

replace = msgspec.structs.replace

_TOLD_AS = {
    "cancel": (Outcome.CANCELLED, EventType.CANCELLED),
    "pause": (Outcome.PAUSED, EventType.PAUSED),
    "resume": (Outcome.RESUMED, EventType.RESUMED),
    "trigger": (Outcome.TRIGGERED, EventType.UPDATED),
    "reschedule": (Outcome.RESCHEDULED, EventType.UPDATED),
}


def check_bulk(command: BulkCommand, now: int, limits: Limits) -> None:
    """Raise InvalidCommand, with the field, if a command is invalid for every schedule."""
    limits.check_id(command.id)
    limits.check(command)
    if isinstance(command, RescheduleCommand):
        begin(command, now)


def concerns(part: BulkPart, entry: Entry) -> bool:
    """Return whether a part must still be applied to a pending schedule."""
    schedule, progress, command = entry.schedule, entry.progress, part.command
    if schedule.tenant != command.tenant or schedule.id <= part.after:
        return False
    return max(progress.arrival, progress.bulk_offset) < command.offset and is_selected(entry, part.selection)


def is_selected(entry: Entry, selection: Selection) -> bool:
    """Return whether a selection matches a schedule."""
    labels, wanted = entry.schedule.labels or {}, selection.labels or {}
    return entry.schedule.id.startswith(selection.id_prefix) and all(
        labels.get(name) == value for name, value in wanted.items()
    )


def decide_bulk(command: BulkCommand, current: Entry, now: int, limits: Limits) -> Decision:
    """Decide a bulk command on one schedule that it concerns.

    If that is a conflict, the schedule does not change. In any case, the command no longer concerns it afterwards.
    """
    single = replace(command, id=current.schedule.id, selection=None, reply_to=None)
    try:
        decision = decide(single, current, now, limits)
    except InvalidCommand as error:  # a time rule for which this schedule's jitter leaves no time
        decision = Decision(Outcome.CONFLICT, current, subject=current, reason=str(error))
    if decision.entry is None:
        return decision
    progress = replace(decision.entry.progress, bulk_offset=command.offset)
    return replace(decision, entry=replace(decision.entry, progress=progress))


def result_of(total: BulkTotal) -> Result:
    """Return the result of a finished bulk command."""
    command = total.command
    outcome, _ = _TOLD_AS[command.name]
    return Result(
        command.name,
        command.tenant,
        command.id,
        outcome,
        partition=command.partition,
        offset=offset_of(command.offset),
        reason=_without(total),
        count=total.changed,
    )


def event_of(total: BulkTotal, now: int) -> HistoryEvent:
    """Return the history event of a finished bulk command. `now` is UTC epoch ms. Each schedule has its own event."""
    command = total.command
    _, event = _TOLD_AS[command.name]
    labels = (command.selection and command.selection.labels) or {}
    labelled = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    what = f"{command.name} of many" + (f", labels {labelled}" if labelled else "")
    return HistoryEvent(
        event,
        command.tenant,
        command.id,
        version=None,
        due=None,
        at=now,
        sequence=None,
        attempt=None,
        target_topic=None,
        reason="; ".join(filter(None, (what, _without(total)))),
        partition=command.partition,
        count=total.changed,
    )


def _without(total: BulkTotal) -> str | None:
    """Return a text about partitions that have not confirmed a command; None if there are none."""
    partitions = ", ".join(map(str, total.without))
    if not partitions:
        return None
    if len(total.without) == 1:
        return f"partition {partitions} has not confirmed the command"
    return f"partitions {partitions} have not confirmed the command"
