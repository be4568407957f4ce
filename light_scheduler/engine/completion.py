"""The effect of a consumer's report on a schedule: a firing is completed, has failed, or takes longer.

A report that arrives too late changes nothing.
"""

from __future__ import annotations

import msgspec

from light_scheduler.model import (
    LATEST_INSTANT,
    Acknowledgement,
    Awaited,
    Backoff,
    CompleteCommand,
    Entry,
    EventType,
    ExtendCommand,
    FixedDelay,
    Outcome,
    Progress,
    Schedule,
)
from light_scheduler.model.plain_reasons import FAILED, extended

from .decision import Decision
from .progress import release_of, run_ended, standing, why_finished

DEFAULT_TIMEOUT_MS = 300_000
"""How long a fixed-delay series waits for a completion by default."""

replace = msgspec.structs.replace


def acknowledgement_of(schedule: Schedule) -> Acknowledgement | None:
    """Return how a schedule's firings must be completed; None if they are not delivered again without completion."""
    if isinstance(schedule.trigger, FixedDelay) and schedule.acknowledgement is None:
        return Acknowledgement(DEFAULT_TIMEOUT_MS, max_attempts=1)
    return None if isinstance(schedule.trigger, Backoff) else schedule.acknowledgement


def timeout_end(now: int, timeout: int) -> int:
    """Return the end of a timeout (ms) that begins now, at most the last possible instant."""
    return min(now + timeout, LATEST_INSTANT)


def next_again(schedule: Schedule, progress: Progress, now: int) -> Awaited | None:
    """Return the firing that is to be delivered once more at an instant, unless something else is next.

    Of a paused schedule, it is so if the schedule is resumed.
    """
    firing = min(progress.awaited, key=_until, default=None)
    if firing is None:
        return None
    return firing if firing.until <= min((now, release_of(schedule, progress), *progress.triggered)) else None


def complete(command: CompleteCommand, current: Entry, now: int) -> Decision:
    """Decide a completion at `now` (UTC epoch ms).

    It must match the firing and the attempt: a completion that arrives after a redelivery changes nothing.
    """
    firing = _named(command, current)
    if isinstance(firing, Decision):
        return firing
    schedule, progress = current.schedule, current.progress
    subject = _subject(current, firing)
    if command.succeeded and isinstance(schedule.trigger, Backoff):
        return Decision(Outcome.COMPLETED, None, EventType.COMPLETED, subject, finished="it was completed")
    decided = _ended if command.succeeded else _failed
    after = decided(schedule, progress, firing, command, now)
    entry = standing(schedule, after)
    finished = why_finished(schedule, after) if entry is None else None
    reason = None if command.succeeded else FAILED
    return Decision(Outcome.COMPLETED, entry, EventType.COMPLETED, subject, reason, finished)


def extend(command: ExtendCommand, current: Entry, now: int) -> Decision:
    """Decide a report at `now` (UTC epoch ms) that a firing is still being processed: its timeout restarts.

    It must match firing and attempt like a completion, and never shortens the timeout. A report that was recorded in
    time counts, however late a worker reads it, unless the firing was delivered again.
    """
    firing = _named(command, current)
    if isinstance(firing, Decision):
        return firing
    schedule, progress = current.schedule, current.progress
    if isinstance(schedule.trigger, Backoff):
        reason = "the attempts of a backoff series have their own times: they cannot be extended"
        return Decision(Outcome.CONFLICT, current, subject=current, reason=reason)
    sent_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    if sent_at >= firing.until:
        reason = f"the time-out of attempt {firing.attempt} was over {sent_at - firing.until} ms before"
        return Decision(Outcome.CONFLICT, current, subject=current, reason=reason)
    waits = acknowledgement_of(schedule)  # None if it waits because the schedule was a fixed delay before
    timeout = DEFAULT_TIMEOUT_MS if waits is None else waits.timeout
    until = max(firing.until, timeout_end(now, timeout if command.timeout is None else command.timeout))
    if _may_be_refused(schedule, progress, firing, now):
        progress = replace(progress, refusals=0, retry_at=None)
    awaited = tuple(replace(each, until=until) if each is firing else each for each in progress.awaited)
    entry = standing(schedule, replace(progress, awaited=awaited))
    return Decision(Outcome.UPDATED, entry, EventType.UPDATED, _subject(current, firing), extended(firing.attempt))


def _named(command: CompleteCommand | ExtendCommand, current: Entry) -> Awaited | Decision:
    """Return the awaited firing with a command's due time and attempt; otherwise, the decision on the command."""
    awaited = current.progress.awaited
    firing = next((each for each in awaited if each.due == command.firing_due), None)
    latest = max((each.attempt for each in awaited), default=0)
    if firing is None and isinstance(current.schedule.trigger, Backoff) and command.attempt < latest:
        return _overtaken(command, current, latest)
    if firing is None:
        return Decision(Outcome.NOT_FOUND, current, reason="no such firing of it is waiting for completion")
    if command.attempt != firing.attempt:
        return _overtaken(command, current, firing.attempt)
    return firing


def _subject(current: Entry, firing: Awaited) -> Entry:
    """Return the entry for history events about an awaited firing."""
    named = replace(current.progress, due=firing.due, planned=None, sequence=firing.sequence, attempt=firing.attempt)
    return Entry(current.schedule, named)


def _overtaken(command: CompleteCommand | ExtendCommand, current: Entry, latest: int) -> Decision:
    done = "completed" if isinstance(command, CompleteCommand) else "extended"
    reason = f"attempt {command.attempt} was {done}; the latest one is {latest}"
    return Decision(Outcome.CONFLICT, current, subject=current, reason=reason)


def _failed(schedule: Schedule, progress: Progress, firing: Awaited, command: CompleteCommand, now: int) -> Progress:
    if isinstance(schedule.trigger, Backoff):
        return progress  # the next attempt is already planned
    waits = acknowledgement_of(schedule)
    if waits is None or (isinstance(schedule.trigger, FixedDelay) and waits.max_attempts == 1):
        return _ended(schedule, progress, firing, command, now)
    until = min(firing.until, now)  # an overdue firing keeps its place
    awaited = tuple(replace(each, until=until) if each is firing else each for each in progress.awaited)
    return replace(progress, awaited=awaited)


def _ended(schedule: Schedule, progress: Progress, firing: Awaited, command: CompleteCommand, now: int) -> Progress:
    done = replace(progress, awaited=tuple(each for each in progress.awaited if each is not firing))
    if _may_be_refused(schedule, progress, firing, now) or (done.queued is not None and not done.awaited):
        done = replace(done, refusals=0, retry_at=None)  # something else is next than what was refused
    # When it was completed, as far as the sender's clock can be trusted: after the firing, and not in the future.
    recorded_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    completed_at = max(firing.fired_at, recorded_at)
    return run_ended(schedule, done, completed_at)


def _may_be_refused(schedule: Schedule, progress: Progress, firing: Awaited, now: int) -> bool:
    """Return whether the next delivery of a firing may be what the target has refused."""
    is_behind_triggered = progress.paused and bool(progress.triggered)
    return firing is next_again(schedule, progress, now) and not is_behind_triggered


def _until(awaited: Awaited) -> int:
    return awaited.until
