"""A schedule that wakes takes turns. Each turn delivers at most one message.

A schedule wakes because a firing is due or was triggered, because a delivered firing was not completed in time, or to
retry a firing that its target refused. In each case, `take_turn` returns the message to deliver, the history event, and
the schedule's next state. If that state wakes immediately, another turn follows. Instants are UTC epoch ms, durations
are ms.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from light_scheduler.model import (
    NEVER,
    NO_BOUNDS,
    NONE_PLANNED,
    Awaited,
    Backoff,
    DeadLetterCause,
    Entry,
    EventType,
    Once,
    Progress,
    Schedule,
)

from .completion import acknowledgement_of, next_again, timeout_end
from .decision import Skipped
from .expiry import why_expired
from .firing_rules import FiringRules
from .misfire import catch_up
from .overlap import QUEUED, may_not_overlap
from .progress import (
    after_planned,
    counted,
    is_wanted_late,
    release_of,
    run_ended,
    standing,
    why_finished,
    window_end,
)
from .refused_firings import after_overtaking, set_aside

replace = msgspec.structs.replace


class Turn(msgspec.Struct, frozen=True, gc=False):
    """The decision on a schedule that woke.

    `subject` is the schedule as this turn's firing sees it: its progress has due time, sequence and attempt. `entry` is
    the pending schedule afterwards (None: there is none). The history records the `skipped` firings, by their reasons,
    then the `event` (None: nothing happened), then why the series is `finished` (None: it is not). With `dead_letter`,
    the message goes to the dead letters. `steps` is the cost of the decision: the number of firings passed over one by
    one.
    """

    subject: Entry
    entry: Entry | None = None
    event: EventType | None = EventType.FIRED
    reason: str | None = None
    dead_letter: DeadLetterCause | None = None
    skipped: tuple[Skipped, ...] = ()
    finished: str | None = None
    steps: int = 0

    @property
    def delivers(self) -> bool:
        return self.event is EventType.FIRED


class _Conditions(NamedTuple):
    """Conditions of a delivery besides its schedule. `refusal` is the reason why its target refuses it, if it does."""

    now: int
    rules: FiringRules
    refusal: str | None


def take_turn(entry: Entry, now: int, rules: FiringRules, refusal: str | None = None) -> Turn:
    """Decide on a schedule that wakes at `now`. `refusal` is the reason why its target refuses the message, if it does.

    Firings are taken in the order in which they may be delivered, so a refused firing stays the next one. A firing
    always expires once its time to live is over.
    """
    schedule, progress = entry.schedule, entry.progress
    if refusal is None and is_plain_turn(schedule, progress, now, rules):
        return Turn(entry)
    conditions = _Conditions(now, rules, refusal)
    if not progress.paused:
        if (overdue := next_again(schedule, progress, now)) is not None:
            return _deliver_again(entry, overdue, conditions)
        if progress.queued is not None and not progress.awaited:
            return _deliver_queued(entry, progress.queued, conditions)
        if release_of(schedule, progress) <= min((now, *progress.triggered)):
            return _deliver_planned(entry, conditions)
    if progress.triggered and progress.triggered[0] <= now:
        return _deliver_triggered(entry, conditions)
    return Turn(entry, standing(schedule, progress), event=None)


def is_plain_turn(schedule: Schedule, progress: Progress, now: int, rules: FiringRules) -> bool:
    """Return whether a firing only needs to be delivered and its schedule removed, like most firings."""
    return (
        type(schedule.trigger) is Once
        and progress.due <= now
        and schedule.bounds is None
        and schedule.acknowledgement is None
        and not progress.paused
        and not (progress.triggered or progress.awaited)
        and (schedule.ttl is None or now <= progress.due + schedule.ttl)
        and (rules.lookback_minutes is None or rules.beyond == "fire" or rules.reaches(progress.due, now))
    )


def _deliver_planned(entry: Entry, conditions: _Conditions) -> Turn:
    schedule, now = entry.schedule, conditions.now
    caught_up = catch_up(schedule, entry.progress, now)
    progress = caught_up.progress
    skipped: tuple[Skipped, ...] = ()
    if caught_up.skipped:
        policy = (schedule.bounds or NO_BOUNDS).misfire
        reason = f"missed, and not delivered because of misfire policy {policy}"
        skipped = (Skipped(entry.progress, caught_up.skipped, reason),)
    if release_of(schedule, progress) > now:
        turn = _turn(entry, progress, event=None)
    elif (why := may_not_overlap(schedule, progress)) is not None:
        if why == QUEUED:
            progress = replace(progress, queued=progress.due)
        else:
            skipped = (*skipped, Skipped(progress, 1, why))
        turn = _turn(entry, after_planned(schedule, progress, now, counts=False), event=None)
    else:
        done = after_planned(schedule, progress, now)
        since = now if is_wanted_late(schedule) else window_end(schedule, progress)
        turn = _deliver(Entry(schedule, progress), progress, done, since, conditions)
    return replace(turn, skipped=skipped, steps=caught_up.steps) if skipped else turn


def _deliver_queued(entry: Entry, due: int, conditions: _Conditions) -> Turn:
    schedule, progress = entry.schedule, entry.progress
    waiting = replace(progress, due=due, planned=None)
    done = counted(schedule, replace(progress, queued=None))
    # It waited for another run and not for the scheduler, so the lookback does not apply.
    return _deliver(entry, waiting, done, conditions.now, conditions)


def _deliver_triggered(entry: Entry, conditions: _Conditions) -> Turn:
    schedule, progress = entry.schedule, entry.progress
    due = progress.triggered[0]
    asked = replace(progress, due=due, planned=None, attempt=1, first_due=None)
    done = counted(schedule, replace(progress, triggered=progress.triggered[1:]))
    return _deliver(entry, asked, after_overtaking(progress, done), due, conditions)


def _deliver(entry: Entry, firing: Progress, done: Progress, waits_since: int, conditions: _Conditions) -> Turn:
    """Deliver a firing for the first time. `done` is the schedule's progress afterwards.

    `waits_since` is the time since when it only waits for the scheduler. If that is before the lookback, it is missed.
    """
    schedule, due, (now, rules, refusal) = entry.schedule, firing.due, conditions
    if firing.first_due is None and isinstance(schedule.trigger, Backoff):
        firing = replace(firing, first_due=due)
    subject = Entry(schedule, firing)
    if (expired := why_expired(schedule, due, now)) is not None:
        return _turn(subject, run_ended(schedule, done, now), EventType.EXPIRED, expired)
    if rules.beyond == "dead-letter" and not rules.reaches(waits_since, now):
        reason = f"due {now - due} ms ago, before the lookback of {rules.lookback_minutes} minutes"
        return _turn(subject, run_ended(schedule, done, now), EventType.MISSED, reason, DeadLetterCause.MISSED)
    if refusal is not None:
        if (retry := set_aside(entry, waits_since, now, rules)) is not None:
            return _turn(subject, retry, EventType.RETRIED, refusal)
        done = run_ended(schedule, done, now)
        return _turn(subject, done, EventType.DEAD_LETTERED, refusal, DeadLetterCause.REFUSED)
    awaited = done.awaited
    if isinstance(schedule.trigger, Backoff):
        # An attempt replaces the previous one; triggered firings are added.
        others = awaited if done.attempt == entry.progress.attempt else ()
        awaited = (*others, Awaited(due, firing.sequence, firing.attempt, NEVER, now))
    elif (waits := acknowledgement_of(schedule)) is not None:
        awaited = (*awaited, Awaited(due, firing.sequence, 1, timeout_end(now, waits.timeout), now))
    is_planned = due not in entry.progress.triggered or isinstance(schedule.trigger, Once)
    delivered = max(done.delivered, due if is_planned else NONE_PLANNED)
    return _turn(subject, replace(done, awaited=awaited, delivered=delivered), EventType.FIRED)


def _deliver_again(entry: Entry, overdue: Awaited, conditions: _Conditions) -> Turn:
    """Redeliver a firing that was not completed in time, or give it up."""
    schedule, progress, (now, rules, refusal) = entry.schedule, entry.progress, conditions
    attempt = overdue.attempt + 1
    named = replace(progress, due=overdue.due, planned=None, sequence=overdue.sequence)
    again = Entry(schedule, replace(named, attempt=attempt))
    others = tuple(each for each in progress.awaited if each is not overdue)
    given_up = run_ended(schedule, replace(progress, awaited=others, refusals=0, retry_at=None), overdue.until)
    waits = acknowledgement_of(schedule)
    if waits is None or overdue.attempt >= waits.max_attempts:
        last = Entry(schedule, replace(named, attempt=overdue.attempt))
        reason = f"not completed after {overdue.attempt} attempt{'s' if overdue.attempt > 1 else ''}"
        return _turn(last, given_up, EventType.DEAD_LETTERED, reason, DeadLetterCause.UNACKNOWLEDGED)
    if (expired := why_expired(schedule, overdue.due, now)) is not None:
        return _turn(again, given_up, EventType.EXPIRED, expired)
    if refusal is not None:
        if (retry := set_aside(entry, overdue.until, now, rules)) is not None:
            return _turn(again, retry, EventType.RETRIED, refusal)
        return _turn(again, given_up, EventType.DEAD_LETTERED, refusal, DeadLetterCause.REFUSED)
    delivered = Awaited(overdue.due, overdue.sequence, attempt, timeout_end(now, waits.timeout), now)
    done = replace(progress, awaited=(*others, delivered), refusals=0, retry_at=None)
    return _turn(again, done, EventType.FIRED, f"attempt {overdue.attempt} was not completed")


def _turn(
    subject: Entry,
    progress: Progress,
    event: EventType | None,
    reason: str | None = None,
    dead_letter: DeadLetterCause | None = None,
) -> Turn:
    entry = standing(subject.schedule, progress)
    finished = why_finished(subject.schedule, progress) if entry is None else None
    return Turn(subject, entry, event, reason, dead_letter, finished=finished)
