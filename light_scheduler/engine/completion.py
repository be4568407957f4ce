"""What the consumer of a firing says of it does to its schedule."""

from __future__ import annotations

import msgspec

from light_scheduler.model import (
    Acknowledgement,
    Awaited,
    Backoff,
    CompleteCommand,
    Entry,
    EventType,
    FixedDelay,
    Once,
    Outcome,
    Progress,
    Schedule,
)

from .decision import Decision
from .progress import run_ended, standing

DEFAULT_TIMEOUT_MS = 300_000
"""How long a fixed-delay series that says nothing else waits for a completion before it goes on."""

replace = msgspec.structs.replace


def acknowledgement_of(schedule: Schedule) -> Acknowledgement | None:
    """Return how a schedule's firings are to be completed before they are delivered again, if they are."""
    if isinstance(schedule.trigger, FixedDelay) and schedule.acknowledgement is None:
        return Acknowledgement(DEFAULT_TIMEOUT_MS, max_attempts=1)
    return None if isinstance(schedule.trigger, Backoff) else schedule.acknowledgement


def complete(command: CompleteCommand, current: Entry, now: int) -> Decision:
    """Decide a completion at an instant (UTC epoch ms).

    It is fenced by firing and attempt: one that comes late, after the firing was delivered again, changes nothing.
    """
    schedule, progress = current.schedule, current.progress
    firing = next((each for each in progress.awaited if each.due == command.firing_due), None)
    latest = max((each.attempt for each in progress.awaited), default=0)
    if firing is None and isinstance(schedule.trigger, Backoff) and command.attempt < latest:
        return _overtaken(command, current, latest)
    if firing is None:
        return Decision(Outcome.NOT_FOUND, current, reason="no such firing of it waits for its completion")
    if command.attempt != firing.attempt:
        return _overtaken(command, current, firing.attempt)
    subject = Entry(
        schedule, replace(progress, due=firing.due, planned=None, sequence=firing.sequence, attempt=firing.attempt)
    )
    if command.succeeded:
        entry = _succeeded(schedule, progress, firing, command, now)
        reason = None
    else:
        entry = _failed(schedule, progress, firing, command, now)
        reason = "failure"
    finished = entry is None and not isinstance(schedule.trigger, Once)
    return Decision(Outcome.COMPLETED, entry, EventType.COMPLETED, subject, reason, finished)


def _overtaken(command: CompleteCommand, current: Entry, latest: int) -> Decision:
    reason = f"attempt {command.attempt} was completed; the latest one is {latest}"
    return Decision(Outcome.CONFLICT, current, subject=current, reason=reason)


def _succeeded(
    schedule: Schedule, progress: Progress, firing: Awaited, command: CompleteCommand, now: int
) -> Entry | None:
    if isinstance(schedule.trigger, Backoff):
        return None
    return standing(schedule, _ended(schedule, progress, firing, command, now))


def _failed(
    schedule: Schedule, progress: Progress, firing: Awaited, command: CompleteCommand, now: int
) -> Entry | None:
    if isinstance(schedule.trigger, Backoff):
        return standing(schedule, progress)  # the next attempt has its time
    waits = acknowledgement_of(schedule)
    if isinstance(schedule.trigger, FixedDelay) and waits is not None and waits.max_attempts == 1:
        return standing(schedule, _ended(schedule, progress, firing, command, now))
    awaited = tuple(replace(each, until=now) if each is firing else each for each in progress.awaited)
    return standing(schedule, replace(progress, awaited=awaited))


def _ended(schedule: Schedule, progress: Progress, firing: Awaited, command: CompleteCommand, now: int) -> Progress:
    done = replace(progress, awaited=tuple(each for each in progress.awaited if each is not firing))
    if firing.until <= now:
        done = replace(done, refusals=0, retry_at=None)  # it was to be delivered again: what was refused may be that
    # When it was completed, as far as the sender's clock can be trusted: after the firing, and not in the future.
    recorded_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    completed_at = max(firing.fired_at, recorded_at)
    return run_ended(schedule, done, completed_at)
