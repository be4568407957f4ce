"""Explains why a firing was delivered late, if the history shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from light_scheduler.durations import distance
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import format_instant

from .updates import defines

LATE_MS = 1_000
"""Deliveries up to this late count as on time in explanations."""

NEAR = 50
"""Number of earlier events that are searched for a reason."""

UNKNOWN = (
    "the history does not say why (workers that were down or restarting, an unavailable target topic, a rate cap and a "
    "backlog leave no event)"
)


def timeliness(event: HistoryEvent, before: Sequence[HistoryEvent], window: int = 0) -> str:
    """Describe how late a delivery was, and why: `on time (3 ms after due)`, `2h 5m late: ...`.

    `before` are the events before it, in order. `window` (ms) is how late it may be according to its schedule.
    """
    late = 0 if event.due is None else event.at - event.due
    if late <= LATE_MS:
        return f"on time ({late} ms after due)"
    if late <= window:
        return f"{distance(late)} after due, within its window of {distance(window)}"
    reasons = (reason for cause in _CAUSES if (reason := cause(event, before)) is not None)
    return f"{distance(late)} late: {next(reasons, UNKNOWN)}"


def _refused(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str | None:
    for each in reversed(before):
        if each.event is EventType.RETRIED and each.sequence == event.sequence and each.version == event.version:
            return f"its target had refused it ({each.reason})"
    return None


def _paused(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str | None:
    resumed = _last(before, EventType.RESUMED)
    if resumed is None or event.due is None or resumed.at <= event.due:
        return None
    return f"it was paused until {format_instant(resumed.at)}"


def _accepted_late(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str | None:
    for each in reversed(before):
        if defines(each) and each.version == event.version:
            if event.due is None or each.at <= event.due:
                return None
            late = distance(each.at - event.due)
            return f"its command was carried out {late} after that time: it was sent late, or waited to be read"
    return None


def _queued(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str | None:
    completed = _last(before, EventType.COMPLETED)
    if completed is None or event.due is None or completed.due is None or event.sequence == completed.sequence:
        return None
    if completed.due < event.due < completed.at and event.at - completed.at <= LATE_MS:
        return f"the firing before it was only completed at {format_instant(completed.at)}"
    return None


def _missed_too(event: HistoryEvent, before: Sequence[HistoryEvent]) -> str | None:
    skipped = _last(before, EventType.SKIPPED)
    if skipped is None or (skipped.at, skipped.version) != (event.at, event.version) or skipped.due is None:
        return None
    return f"the firings since {format_instant(skipped.due)} were not delivered in time either, and {UNKNOWN}"


_Cause = Callable[[HistoryEvent, Sequence[HistoryEvent]], str | None]

_CAUSES: tuple[_Cause, ...] = (_refused, _paused, _accepted_late, _queued, _missed_too)


def _last(before: Sequence[HistoryEvent], kind: EventType) -> HistoryEvent | None:
    return next((each for each in reversed(before) if each.event is kind), None)
