"""Decides which events define a schedule.

Triggers and extensions are also `updated` events, but do not change the definition. They are recognised by the reason.
"""

from __future__ import annotations

from light_scheduler.model import EventType, HistoryEvent

_TRIGGERED = "triggered"
_EXTENDED = "extended"

_WITH_NEXT_DUE = {EventType.SCHEDULED, EventType.UPDATED, EventType.PAUSED, EventType.RESUMED, EventType.MOVED}


def defines(event: HistoryEvent) -> bool:
    """Return whether an event is from a command that defined or redefined its schedule."""
    if event.event is EventType.UPDATED:
        return not (event.reason or "").startswith((_TRIGGERED, _EXTENDED))
    return event.event is EventType.SCHEDULED


def tells_next_due(event: HistoryEvent) -> bool:
    """Return whether an event's due time is that of the next firing, and not of a delivered one."""
    is_extension = event.event is EventType.UPDATED and (event.reason or "").startswith(_EXTENDED)
    return event.event in _WITH_NEXT_DUE and not is_extension
