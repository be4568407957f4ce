"""The effect of a command on its schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from light_scheduler.model import (
    NEVER,
    Awaited,
    Backoff,
    Bounds,
    Command,
    CompleteCommand,
    Cron,
    Entry,
    EventType,
    ExtendCommand,
    FixedDelay,
    FixedRate,
    Once,
    Outcome,
    Progress,
    RescheduleCommand,
    Schedule,
    ScheduleCommand,
    Trigger,
    home_key_of,
)
from light_scheduler.model.arrival import offset_of
from light_scheduler.model.plain_reasons import RESCHEDULED, TRIGGERED

from .completion import complete, extend
from .decision import Decision
from .limits import Limits
from .overlap import MOST_AWAITED
from .progress import is_exhausted, planned_for, standing
from .recurrence import is_planned, next_of, within
from .refused_firings import overtaken, with_paused
from .superseded import left_undelivered
from .timing import begin, recorded_at_of

_ALL_DELIVERED = "its new times have been delivered"

replace = msgspec.structs.replace


def decide(command: Command, current: Entry | None, now: int, limits: Limits) -> Decision:
    """Decide a command on the current schedule with its id, at `now` (UTC epoch ms).

    Raises InvalidCommand if the command must be rejected.
    """
    if current is None:
        limits.check_id(command.id)
    limits.check(command)
    if command.expected_version is not None and (conflict := _version_conflict(command, current)):
        return conflict
    if isinstance(command, ScheduleCommand):
        return _schedule(command, current, now)
    if current is None:
        return Decision(Outcome.NOT_FOUND, None, reason="no schedule with this id is pending")
    if isinstance(command, CompleteCommand):
        return complete(command, current, now)
    if isinstance(command, ExtendCommand):
        return extend(command, current, now)
    if isinstance(command, RescheduleCommand):
        return _reschedule(command, current, now)
    match command.name:
        case "cancel":
            reason = _what_was_delivered(current.progress)
            return Decision(Outcome.CANCELLED, None, EventType.CANCELLED, current, reason)
        case "pause":
            return _paused(current, now, Outcome.PAUSED, EventType.PAUSED, paused=True)
        case "resume":
            return _paused(current, now, Outcome.RESUMED, EventType.RESUMED, paused=False)
        case "trigger":
            return _triggered(current, now)


def _what_was_delivered(progress: Progress) -> str | None:
    """Return a text about awaited firings, for which a cancel comes too late; None if there are none."""
    if not progress.awaited:
        return None
    dues = _dues(progress.awaited)
    return f"too late for what was delivered and not completed, which was due at {dues}: it is not delivered again"


def _dues(awaited: Iterable[Awaited]) -> str:
    return ", ".join(str(each.due) for each in awaited)


def _schedule(command: ScheduleCommand, current: Entry | None, now: int) -> Decision:
    if current is not None and command.on_conflict != "replace":
        if command.on_conflict == "keep":
            return Decision(Outcome.KEPT, current, subject=current)
        return Decision(Outcome.CONFLICT, current, subject=current, reason="a schedule with this id already exists")
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
        offset_of(command.offset),
        now,
        command.ttl,
        command.priority,
        command.labels,
        command.bounds,
        command.acknowledgement,
        home_key_of(command.key, command.id, command.target),
    )
    delivered = 0 if current is None or not isinstance(trigger, FixedRate | Cron) else _latest_delivered(current)
    progress = Progress(planned, command.offset, paused=command.paused, delivered=delivered)
    if current is not None and _begins_before_the_last_firing(trigger, planned, current):
        is_owed = _is_owed(trigger, planned, current)
        following = planned if is_owed else _first_after(delivered, trigger, planned, command.bounds)
        progress = planned_for(schedule, progress, following, delivered + 1)
        entry = standing(schedule, progress)
    elif command.bounds is not None or command.paused:
        entry = standing(schedule, planned_for(schedule, progress, planned))
    else:
        entry = Entry(schedule, progress)
    if current is None:
        return Decision(Outcome.SCHEDULED, entry, EventType.SCHEDULED, entry)
    reason = _replaced(current.progress)
    after = progress if entry is None else entry.progress
    skipped = left_undelivered(current, after, recorded_at_of(command, now), "replaced")
    if entry is not None:
        return Decision(Outcome.UPDATED, entry, EventType.UPDATED, entry, reason, skipped=skipped)
    subject = Entry(schedule, progress)
    finished = "all its times are before the last firing of the schedule that it replaces"
    reason = finished if reason is None else f"{reason}; {finished}"
    return Decision(Outcome.UPDATED, None, EventType.UPDATED, subject, reason, finished, skipped)


def _replaced(progress: Progress) -> str | None:
    """Return a text about awaited firings of the old definition, which are given up; None if there are none."""
    if not progress.awaited:
        return None
    return f"replaced: {_given_up(progress.awaited)}"


def _given_up(awaited: Iterable[Awaited]) -> str:
    return f"gives up what was delivered and not completed, which was due at {_dues(awaited)}"


def _begins_before_the_last_firing(trigger: Trigger, planned: int, current: Entry) -> TypeGuard[FixedRate | Cron]:
    """Return whether a new series at clock times begins no later than the last firing of the old one.

    Other triggers, which fire once or count from their command, request another firing.
    """
    return isinstance(trigger, FixedRate | Cron) and planned <= _latest_delivered(current)


def _is_owed(trigger: FixedRate | Cron, planned: int, current: Entry) -> bool:
    """Return whether a new series has only one time up to the last delivery, and the old series did not have it."""
    following = next_of(trigger, planned)
    return _is_another(planned, current) and (following is None or following > _latest_delivered(current))


def _is_to_come(current: Entry) -> bool:
    """Return whether a one-shot was not delivered yet."""
    return isinstance(current.schedule.trigger, Once) and current.progress.due != NEVER


def _is_another(planned: int, current: Entry) -> bool:
    """Return whether a series has no firing at an instant up to its last one. False for one-shots and backoff series.

    An instant before it was replaced or rescheduled may have been a time of its earlier definition.
    """
    schedule = current.schedule
    if isinstance(schedule.trigger, Once | Backoff) or planned == _latest_delivered(current):
        return False
    is_of_its_plan = schedule.version == 1 or planned >= schedule.accepted_at
    return is_of_its_plan and not is_planned(schedule.trigger, planned)


def _paused(current: Entry, now: int, outcome: Outcome, event: EventType, *, paused: bool) -> Decision:
    if current.progress.paused is paused:
        return Decision(outcome, current, subject=current)
    entry = standing(current.schedule, with_paused(current.schedule, current.progress, now, paused=paused))
    return Decision(outcome, entry, event, entry)


def _triggered(current: Entry, now: int) -> Decision:
    """Fire now, even if paused: a one-shot instead of at its time, a series in addition to its times."""
    schedule, progress = current.schedule, current.progress
    if isinstance(schedule.trigger, Once) and progress.due == NEVER:
        return _triggered_again(current, now)
    if (reason := _why_no_more(schedule, progress)) is not None:
        return Decision(Outcome.CONFLICT, current, subject=current, reason=reason)
    is_ahead = progress.paused and not progress.triggered
    asked = overtaken(progress) if is_ahead else _tried_at_once(progress, now)
    if isinstance(schedule.trigger, Once):
        asked = replace(asked, due=NEVER, planned=None, refusals=0, retry_at=None)
    asked = replace(asked, triggered=tuple(sorted((*asked.triggered, _free_instant(schedule, asked, now)))))
    if is_exhausted(schedule, asked):  # it replaces the last planned firing
        asked = replace(asked, due=NEVER, planned=None, refusals=0, retry_at=None)
    entry = standing(schedule, asked)
    return Decision(Outcome.TRIGGERED, entry, EventType.UPDATED, entry, TRIGGERED)


def _why_no_more(schedule: Schedule, progress: Progress) -> str | None:
    """Return why no further firing may be triggered; None if one may."""
    if len(progress.awaited) + len(progress.triggered) >= MOST_AWAITED:
        return f"{MOST_AWAITED} firings wait already to be delivered or completed"
    if is_exhausted(schedule, progress):
        return "together with the waiting firings, it has reached its maximum number of firings"
    return None


def _tried_at_once(progress: Progress, now: int) -> Progress:
    """Retry a refused firing now, without using up one of its retries."""
    if progress.retry_at is None or progress.retry_at <= now:
        return progress
    return replace(progress, retry_at=now, refusals=max(0, progress.refusals - 1))


def _triggered_again(current: Entry, now: int) -> Decision:
    """Trigger a one-shot that was triggered or delivered before. It fires only once, however often it is triggered."""
    progress = current.progress
    if not progress.triggered:
        return Decision(Outcome.NOT_FOUND, current, reason="it was delivered, and is waiting for completion")
    if progress.retry_at is None or progress.retry_at <= now:
        return Decision(Outcome.TRIGGERED, current, subject=current, reason="was already triggered: it fires only once")
    entry = standing(current.schedule, _tried_at_once(progress, now))
    return Decision(Outcome.TRIGGERED, entry, EventType.UPDATED, entry, TRIGGERED)


def _free_instant(schedule: Schedule, progress: Progress, now: int) -> int:
    """Return the first instant from now on without a firing, since the due time identifies a firing."""
    taken = {progress.due, progress.queued, *progress.triggered, *(each.due for each in progress.awaited)}
    instant = now
    while instant in taken or is_planned(schedule.trigger, instant):
        instant += 1
    return instant


def _reschedule(command: RescheduleCommand, current: Entry, now: int) -> Decision:
    trigger, planned = begin(command, now)
    delivered = _latest_delivered(current)
    taken = max(delivered, _queued_beside(trigger, current))
    is_owed = isinstance(trigger, Once) and (_is_to_come(current) or _is_another(planned, current))
    following = planned if is_owed else _first_after(taken, trigger, planned, command.bounds)
    schedule = replace(
        current.schedule,
        version=current.schedule.version + 1,
        trigger=trigger,
        accepted_at=now,
        bounds=command.bounds,
    )
    begun = Progress(planned, command.offset, paused=current.progress.paused, delivered=delivered)
    progress = _carried_over(current, schedule, begun, has_times=following is not None)
    if isinstance(trigger, FixedDelay) and progress.awaited:
        progress = replace(progress, due=NEVER)  # the new delay begins after the current run
    else:
        progress = planned_for(schedule, progress, following, taken + 1)
    entry = standing(schedule, progress)
    reason = _rescheduled(current, progress, following, trigger)
    skipped = left_undelivered(current, progress, recorded_at_of(command, now), "rescheduled")
    if entry is not None:
        return Decision(Outcome.RESCHEDULED, entry, EventType.UPDATED, entry, reason, skipped=skipped)
    subject = Entry(schedule, progress)
    return Decision(Outcome.RESCHEDULED, None, EventType.UPDATED, subject, reason, _ALL_DELIVERED, skipped)


def _latest_delivered(current: Entry) -> int:
    """Return the due time of the last delivered planned firing, ignoring triggered ones.

    Progress from earlier versions only has it while that firing waits for completion.
    """
    schedule, progress = current.schedule, current.progress
    if progress.delivered:
        return progress.delivered
    is_told = isinstance(schedule.trigger, Cron | FixedRate) and (schedule.bounds is None or not schedule.bounds.jitter)
    dues = (each.due for each in progress.awaited)
    return max((due for due in dues if not is_told or is_planned(schedule.trigger, due)), default=0)


def _queued_beside(trigger: Trigger, current: Entry) -> int:
    """Return the due time of a queued firing that stays next to a new series at clock times; 0 if there is none."""
    was_one = isinstance(current.schedule.trigger, Once | Backoff)
    return 0 if was_one or not isinstance(trigger, FixedRate | Cron) else current.progress.queued or 0


def _first_after(taken: int, trigger: Trigger, planned: int, bounds: Bounds | None) -> int | None:
    """Return the first time of a new time rule after `taken`; None if there is none.

    A command counts from when it was recorded. A firing that became due before it was applied, and was delivered or
    queued (`taken`), could also have a time in the new plan, and would be delivered again.
    """
    if planned > taken:
        return planned
    if isinstance(trigger, FixedDelay | Backoff):  # they count from their command, and are moved after `taken`
        return None if within(bounds, taken + 1) is None else planned
    return None if isinstance(trigger, Once) else within(bounds, next_of(trigger, taken))


def _carried_over(current: Entry, schedule: Schedule, progress: Progress, *, has_times: bool) -> Progress:
    """Keep the firings that a schedule still owes besides its new times: triggered, queued and awaited ones.

    A one-shot has one firing, which gets another time; a backoff series has one piece of work. A schedule that becomes
    one of these only delivers that, for the first time. Each awaited firing keeps its timeout. A backoff series keeps
    no earlier ones, since completing any attempt completes the series.
    """
    waits = not isinstance(schedule.trigger, Backoff)
    if waits:
        again = _delivered_again(current) if has_times else ()
        progress = replace(progress, awaited=tuple(each for each in current.progress.awaited if each not in again))
    if has_times and any(isinstance(each.trigger, Once | Backoff) for each in (current.schedule, schedule)):
        return progress
    queued = current.progress.queued if waits else None
    return replace(progress, queued=queued, triggered=current.progress.triggered)


def _delivered_again(current: Entry) -> tuple[Awaited, ...]:
    """Return the awaited deliveries of a one-shot or backoff series, which is delivered again at its new time.

    Excludes awaited deliveries from when the schedule was another series.
    """
    trigger, progress = current.schedule.trigger, current.progress
    if isinstance(trigger, Backoff):
        return progress.awaited
    if not isinstance(trigger, Once) or _is_to_come(current) or progress.triggered:
        return ()
    latest = _latest_delivered(current)
    return tuple(each for each in progress.awaited if each.due == latest)


def _rescheduled(current: Entry, progress: Progress, following: int | None, trigger: Trigger) -> str:
    """Describe the effects of a reschedule besides the new times. `progress` is the new progress."""
    told = []
    if following is None:
        told.append(_ALL_DELIVERED if progress.queued is None else f"{_ALL_DELIVERED}, or are queued")
    again = () if following is None else _delivered_again(current)
    given_up = [each for each in current.progress.awaited if each.until < NEVER and each not in again]
    if given_up and isinstance(trigger, Backoff):
        told.append(_given_up(given_up))
    return f"{RESCHEDULED}: {'; '.join(told)}" if told else RESCHEDULED


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
