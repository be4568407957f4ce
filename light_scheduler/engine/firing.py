"""What becomes of a schedule when it wakes: one turn at a time, each of which delivers at most one message.

A schedule wakes because a firing is due, because one was asked for, because one that was delivered has not been
completed, or because what its target refused is to be tried again. Whatever it is, `take_turn` says what to deliver,
what history records, and how the schedule stands afterwards; when that wakes at once again, another turn follows.
Instants are UTC epoch ms, durations ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from light_scheduler.model import (
    NEVER,
    NO_BOUNDS,
    Awaited,
    Backoff,
    DeadLetterCause,
    Entry,
    EventType,
    FixedDelay,
    Once,
    Progress,
    Schedule,
)

from .misfire import catch_up
from .progress import after_planned, counted, planned_at, planned_for, release_of, run_ended, standing

MINUTE_MS = 60_000

replace = msgspec.structs.replace


@dataclass(frozen=True)
class FiringRules:
    """What holds for every firing.

    `lookback_minutes` is how far back a tick looks (None: all the way), `beyond` what happens to what lies before that,
    and `retries` how often a firing that its target refuses is tried again, each time in the next minute.
    """

    lookback_minutes: int | None = None
    beyond: Literal["fire", "dead-letter"] = "dead-letter"
    retries: int = 1

    def reaches(self, due: int, now: int) -> bool:
        """Tell whether an instant lies in the current minute or one of the past minutes that are scanned."""
        return self.lookback_minutes is None or now // MINUTE_MS - due // MINUTE_MS <= self.lookback_minutes


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """Firings of a schedule that are not delivered: how many, and the first one as its progress names it."""

    progress: Progress
    count: int
    reason: str


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What follows from a schedule's waking.

    `subject` is the schedule as this turn's firing sees it: its progress names due time, sequence and attempt. `entry`
    is what is pending afterwards (None: nothing). History records what was `skipped`, then the `event` (None: nothing
    happened), then that the schedule is `finished`. `dead_letter` says that the message goes to the dead letters.
    """

    subject: Entry
    entry: Entry | None = None
    event: EventType | None = EventType.FIRED
    reason: str | None = None
    dead_letter: DeadLetterCause | None = None
    skipped: Skipped | None = None
    finished: bool = False

    @property
    def delivers(self) -> bool:
        return self.event is EventType.FIRED


def take_turn(entry: Entry, now: int, rules: FiringRules, refusal: str | None = None) -> Turn:
    """Decide what becomes of a schedule that wakes at an instant; `refusal` says why its target refuses the message.

    A firing past its time to live is dropped whatever else holds: nobody wants it any more.
    """
    schedule, progress = entry.schedule, entry.progress
    if progress.triggered:
        asked = replace(progress, due=progress.triggered[0], attempt=1)
        done = counted(schedule, replace(progress, triggered=progress.triggered[1:]))
        return _deliver(entry, asked, done, now, rules, refusal)
    overdue = min(progress.awaited, key=_until, default=None)
    if overdue is not None and overdue.until <= min(now, release_of(schedule, progress)):
        return _deliver_again(entry, overdue, now, rules, refusal)
    if progress.queued is not None and not progress.awaited:
        waiting = replace(progress, due=progress.queued)
        done = counted(schedule, replace(progress, queued=None))
        return _deliver(entry, waiting, done, now, rules, refusal)
    if now < release_of(schedule, progress):
        return Turn(entry, standing(schedule, progress), event=None)
    return _deliver_planned(entry, now, rules, refusal)


def _deliver_planned(entry: Entry, now: int, rules: FiringRules, refusal: str | None) -> Turn:
    schedule, progress = entry.schedule, entry.progress
    planned, count = catch_up(schedule, planned_at(progress), now)
    skipped = None
    if count:
        policy = (schedule.bounds or NO_BOUNDS).misfire
        skipped = Skipped(progress, count, f"missed, and left out by the misfire policy {policy}")
        progress = planned_for(schedule, progress, planned)
        if release_of(schedule, progress) > now:
            return _turn(entry, progress, event=None, skipped=skipped)
    waits = schedule.acknowledgement
    if progress.awaited and waits is not None and waits.overlap != "allow":
        following = after_planned(schedule, progress, now, counts=False)
        if waits.overlap == "queue" and progress.queued is None:
            return _turn(entry, replace(following, queued=progress.due), event=None, skipped=skipped)
        if skipped is None:
            skipped = Skipped(progress, 1, "the firing before it is not completed")
        else:
            skipped = replace(skipped, count=count + 1)
        return _turn(entry, following, event=None, skipped=skipped)
    turn = _deliver(entry, progress, after_planned(schedule, progress, now), now, rules, refusal)
    return turn if skipped is None else replace(turn, skipped=skipped)


def _deliver(entry: Entry, firing: Progress, done: Progress, now: int, rules: FiringRules, refusal: str | None) -> Turn:
    """Deliver a firing for the first time; `done` is the schedule's progress once that has been dealt with."""
    schedule, due = entry.schedule, firing.due
    if firing.first_due is None and isinstance(schedule.trigger, Backoff):
        firing = replace(firing, first_due=due)
    subject = Entry(schedule, firing)
    if (expired := _expired(schedule, due, now)) is not None:
        return _turn(subject, run_ended(schedule, done, now), EventType.EXPIRED, expired)
    if rules.beyond == "dead-letter" and not rules.reaches(due, now):
        reason = f"due {now - due} ms ago, before the lookback of {rules.lookback_minutes} minutes"
        return _turn(subject, run_ended(schedule, done, now), EventType.MISSED, reason, DeadLetterCause.MISSED)
    if refusal is not None:
        if (retry := _set_aside(entry, due, now, rules)) is not None:
            return _turn(subject, retry, EventType.RETRIED, refusal)
        done = run_ended(schedule, done, now)
        return _turn(subject, done, EventType.DEAD_LETTERED, refusal, DeadLetterCause.REFUSED)
    if isinstance(schedule.trigger, Backoff):
        done = replace(done, awaited=(Awaited(due, firing.sequence, firing.attempt, NEVER, now),))
    elif schedule.acknowledgement is not None:
        until = now + schedule.acknowledgement.timeout
        done = replace(done, awaited=(*done.awaited, Awaited(due, firing.sequence, 1, until, now)))
    return _turn(subject, done, EventType.FIRED)


def _deliver_again(entry: Entry, overdue: Awaited, now: int, rules: FiringRules, refusal: str | None) -> Turn:
    """Deliver a firing once more that was not completed in time, or give it up."""
    schedule, progress = entry.schedule, entry.progress
    attempt = overdue.attempt + 1
    again = Entry(schedule, replace(progress, due=overdue.due, sequence=overdue.sequence, attempt=attempt))
    others = tuple(each for each in progress.awaited if each is not overdue)
    given_up = run_ended(schedule, replace(progress, awaited=others, refusals=0, retry_at=None), overdue.until)
    if (expired := _expired(schedule, overdue.due, now)) is not None:
        return _turn(again, given_up, EventType.EXPIRED, expired)
    waits = schedule.acknowledgement
    if waits is None or overdue.attempt >= waits.max_attempts:
        last = Entry(schedule, replace(again.progress, attempt=overdue.attempt))
        reason = f"not completed after {overdue.attempt} attempt{'s' if overdue.attempt > 1 else ''}"
        if isinstance(schedule.trigger, FixedDelay) and overdue.attempt == 1:
            return _turn(last, given_up, EventType.COMPLETED, f"failure: {reason}")
        return _turn(last, given_up, EventType.DEAD_LETTERED, reason, DeadLetterCause.UNACKNOWLEDGED)
    if refusal is not None:
        if (retry := _set_aside(entry, overdue.due, now, rules)) is not None:
            return _turn(again, retry, EventType.RETRIED, refusal)
        return _turn(again, given_up, EventType.DEAD_LETTERED, refusal, DeadLetterCause.REFUSED)
    delivered = Awaited(overdue.due, overdue.sequence, attempt, now + waits.timeout, now)
    done = replace(progress, awaited=(*others, delivered), refusals=0, retry_at=None)
    return _turn(again, done, EventType.FIRED, f"attempt {overdue.attempt} was not completed")


def _turn(
    subject: Entry,
    progress: Progress,
    event: EventType | None,
    reason: str | None = None,
    dead_letter: DeadLetterCause | None = None,
    skipped: Skipped | None = None,
) -> Turn:
    entry = standing(subject.schedule, progress)
    finished = entry is None and not isinstance(subject.schedule.trigger, Once)
    return Turn(subject, entry, event, reason, dead_letter, skipped, finished)


def _expired(schedule: Schedule, due: int, now: int) -> str | None:
    ttl = schedule.ttl
    if ttl is None or now <= due + ttl:
        return None
    return f"{now - due} ms after due; its time to live was {ttl} ms"


def _set_aside(entry: Entry, due: int, now: int, rules: FiringRules) -> Progress | None:
    """Return the progress of a schedule whose target refused a firing, or None if it is not to be tried again."""
    retry_at = (now // MINUTE_MS + 1) * MINUTE_MS
    if entry.progress.refusals >= rules.retries or not rules.reaches(due, retry_at):
        return None
    return replace(entry.progress, refusals=entry.progress.refusals + 1, retry_at=retry_at)


def _until(awaited: Awaited) -> int:
    return awaited.until
