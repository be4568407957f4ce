"""Describes each event of a history in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from light_scheduler.model import NO_BOUNDS, Entry, EventType, HistoryEvent
from light_scheduler.wire import format_instant

from .lateness import NEAR, timeliness
from .updates import tells_next_due


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """An event in words. `version` and `due` are those of the event. Times are UTC epoch ms."""

    at: int
    event: EventType
    version: int | None
    due: int | None
    text: str


def sentences(events: Sequence[HistoryEvent], entry: Entry | None = None) -> list[Sentence]:
    """Return a sentence for each event. `events` must be in order; `entry` is the schedule if it is pending."""
    return [
        Sentence(
            at=event.at,
            event=event.event,
            version=event.version,
            due=event.due,
            text=_text(event, events[max(0, number - NEAR) : number], entry),
        )
        for number, event in enumerate(events)
    ]


def _text(event: HistoryEvent, before: Sequence[HistoryEvent], entry: Entry | None) -> str:
    """Describe an event. `before` are the events before it."""
    match event.event:
        case EventType.FIRED:
            return _fired(event, before, entry)
        case EventType.UPDATED:
            return _updated(event, before)
    return _TEXTS[event.event](event)


def by(event: HistoryEvent) -> str:
    """Return the requester of an event, if known: ` by shop from 192.0.2.7`."""
    if event.by is UNSET:
        return ""
    return f" by {event.by}" + (f" from {event.address}" if event.address else "")


def _scheduled(event: HistoryEvent) -> str:
    return f"Accepted{by(event)} as version {event.version}, for topic {event.target_topic}: {_due(event)}."


def _updated(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str:
    reason = event.reason or ""
    if reason.startswith("rescheduled"):
        return f"Rescheduled{by(event)}, as version {event.version}: {_moved_due(event, before)}{reason[11:]}."
    if reason and not reason.startswith("replaced"):
        return f"{reason[0].upper()}{reason[1:]}{_asked(event)}."
    updated = f"Updated{by(event)} to version {event.version}, for topic {event.target_topic}"
    return f"{updated}: {_moved_due(event, before)}{reason[8:]}."


def _asked(event: HistoryEvent) -> str:
    return f" (asked for{by(event)})" if by(event) else ""


def _moved_due(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str:
    """Describe the change of the due time, if the previous event has the old one."""
    last = before[-1] if before else None
    if last is None or last.due is None or event.due is None or not tells_next_due(last):
        return _due(event)
    if last.due == event.due:
        return f"still {_due(event)}"
    return f"due {format_instant(last.due)} -> {format_instant(event.due)}"


def _cancelled(event: HistoryEvent) -> str:
    return f"Cancelled{by(event)}" + (f": {event.reason}." if event.reason else ".")


def _paused(event: HistoryEvent) -> str:
    return f"Paused{by(event)}."


def _resumed(event: HistoryEvent) -> str:
    return f"Resumed{by(event)}: {_due(event)}."


def _fired(event: HistoryEvent, before: Sequence[HistoryEvent], entry: Entry | None) -> str:
    delivered = f"Firing {event.sequence}, attempt {event.attempt}, was delivered to {event.target_topic}"
    if event.reason:  # a later attempt of a firing has the due time of the first
        return f"{delivered}: {event.reason}."
    is_its_own = entry is not None and entry.schedule.version == event.version
    window = (entry.schedule.bounds or NO_BOUNDS).window if entry is not None and is_its_own else 0
    return f"{delivered}, {timeliness(event, before, window)}."


def _completed(event: HistoryEvent) -> str:
    failed = event.reason is not None
    text = f"Firing {event.sequence}, attempt {event.attempt}, was reported as {'failed' if failed else 'completed'}"
    return f"{text}{by(event)}."


def _retried(event: HistoryEvent) -> str:
    return f"The target refused firing {event.sequence}: {event.reason}. It is tried again in the next minute."


def _skipped(event: HistoryEvent) -> str:
    count = 1 if event.count is UNSET else event.count
    text = "1 firing was" if count == 1 else f"{count} firings were"
    return f"{text} skipped, from {_instant(event.due)} on: {event.reason}."


def _not_delivered(event: HistoryEvent) -> str:
    return f"Firing {event.sequence}, due {_instant(event.due)}, was not delivered: {event.reason}."


def _dead_lettered(event: HistoryEvent) -> str:
    return f"Firing {event.sequence}, due {_instant(event.due)}, became a dead letter: {event.reason}."


def _rejected(event: HistoryEvent) -> str:
    return f"A command{by(event)} was rejected, and changed nothing: {event.reason}."


def _finished(event: HistoryEvent) -> str:
    return f"The series is finished: {event.reason or f'no firing is left after number {event.sequence}'}."


def _moved(event: HistoryEvent) -> str:
    return f"Moved: {event.reason}."


def _due(event: HistoryEvent) -> str:
    return "no firing is planned" if event.due is None else f"due {format_instant(event.due)}"


def _instant(ms: int | None) -> str:
    return "an unknown time" if ms is None else format_instant(ms)


_TEXTS: dict[EventType, Callable[[HistoryEvent], str]] = {
    EventType.SCHEDULED: _scheduled,
    EventType.CANCELLED: _cancelled,
    EventType.PAUSED: _paused,
    EventType.RESUMED: _resumed,
    EventType.COMPLETED: _completed,
    EventType.RETRIED: _retried,
    EventType.SKIPPED: _skipped,
    EventType.EXPIRED: _not_delivered,
    EventType.MISSED: _dead_lettered,
    EventType.DEAD_LETTERED: _dead_lettered,
    EventType.REJECTED: _rejected,
    EventType.FINISHED: _finished,
    EventType.MOVED: _moved,
}
