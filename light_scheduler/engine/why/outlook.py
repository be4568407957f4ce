"""Explains the state of a schedule: when it fires next, what it waits for, or why it does not fire."""

from __future__ import annotations

from collections.abc import Sequence

from light_scheduler.durations import distance
from light_scheduler.engine.progress import release_of
from light_scheduler.engine.refused_firings import OVERTAKEN
from light_scheduler.model import NEVER, Entry, EventType, HistoryEvent, Once, Schedule
from light_scheduler.wire import format_instant

from .ending import Outlook, ending, is_final
from .facts import Facts, Standing
from .resuming import if_resumed, unpaused
from .sentences import by
from .updates import defines
from .waiting import hindrance, tried_again, unfinished


def outlook(events: Sequence[HistoryEvent], facts: Facts) -> Outlook:
    """Explain the state of a schedule. `events` is its history in order."""
    standing = facts.standing
    if standing is not None and not _is_overtaken(events, standing.entry):
        return _standing(events, standing, facts)
    if facts.stopped and not is_final(events):
        return _unreachable(events, facts)
    if not events:
        since = format_instant(facts.searched_from)
        summary = f"It is unknown: it is not pending, and the history since {since} has no event about it."
        return Outlook("unknown", None, summary)
    return ending(events)


def _is_overtaken(events: Sequence[HistoryEvent], entry: Entry) -> bool:
    """Return whether the history, which was read after the entry, already has the schedule's end."""
    last = events[-1] if events else None
    if last is None or last.version != entry.schedule.version:
        return False
    if last.event in (EventType.CANCELLED, EventType.FINISHED):
        return True
    if not isinstance(entry.schedule.trigger, Once):
        return False
    if last.event is EventType.FIRED:
        return entry.schedule.acknowledgement is None and not entry.progress.awaited
    return last.event in (EventType.EXPIRED, EventType.MISSED, EventType.DEAD_LETTERED)


def _standing(events: Sequence[HistoryEvent], standing: Standing, facts: Facts) -> Outlook:
    entry, now = standing.entry, facts.now
    state, due = entry.progress.state, entry.progress.next_due
    if due is None:
        summary = _paused(events, standing, facts) if state == "paused" else unfinished(entry, now)
    elif (retry_at := entry.progress.retry_at) is not None and retry_at != OVERTAKEN:
        summary = tried_again(events, entry, retry_at, now)
    elif due > now:
        hindered = hindrance(standing, facts, due)
        summary = f"It fires next at {format_instant(due)} (in {distance(due - now)}){hindered or '.'}"
    else:
        waits = hindrance(standing, facts, due) or _released(entry, due, now)
        summary = f"It has been due since {format_instant(due)} ({distance(now - due)} ago){waits}"
    if entry.progress.awaited and (due is not None or state == "paused"):
        summary = f"{summary} {unfinished(entry, now)}"
    return Outlook(state, due, summary + _accepted_before(events, entry.schedule))


def _accepted_before(events: Sequence[HistoryEvent], schedule: Schedule) -> str:
    """Return a sentence about when a schedule was accepted, if the history does not contain it."""
    if any(each.version == schedule.version and defines(each) for each in events):
        return ""
    return f" Version {schedule.version} was accepted at {format_instant(schedule.accepted_at)}."


def _paused(events: Sequence[HistoryEvent], standing: Standing, facts: Facts) -> str:
    paused = next((each for each in reversed(events) if each.event is EventType.PAUSED), None)
    since = "" if paused is None else f" since {format_instant(paused.at)}{by(paused)}"
    return f"It is paused{since}, and does not fire until it is resumed.{_resumed(standing, facts)}"


def _resumed(standing: Standing, facts: Facts) -> str:
    """Return a sentence about what happens when a paused schedule is resumed."""
    planned, now = standing.entry.progress.due, facts.now
    after = unpaused(standing.entry, now)
    is_in_the_way = after is not None and (after.progress.wakes_at <= now or after.progress.retry_at is not None)
    if now < planned < NEVER and not is_in_the_way:
        return f" It would fire at {format_instant(planned)}."
    resumed = if_resumed(standing.entry, now, facts.rules)
    hindered = hindrance(standing, facts, now) if resumed.is_now else None
    return f" If it is resumed now, {resumed.told}{hindered or '.'}"


def _released(entry: Entry, due: int, now: int) -> str:
    """Return the end of a sentence about when it is delivered, if nothing hinders that."""
    release = release_of(entry.schedule, entry.progress)
    if due == entry.progress.due and now < release < NEVER:
        return f", and is delivered within its window, at {format_instant(release)}."
    return ", and nothing is known to delay it except what was due before it."


def _unreachable(events: Sequence[HistoryEvent], facts: Facts) -> Outlook:
    last = events[-1].partition if events else None
    named = [each for each in facts.stopped if each.partition == last] or list(facts.stopped)
    shown = "; ".join(f"{each.topic}[{each.partition}] ({each.reason})" for each in named[:3])
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    summary = f"It is not known whether it is pending: nobody answers for {shown}{more}. Ask again later."
    return Outlook("unreachable", None, summary)
