"""What an event tells of the definition of its schedule.

A trigger and an extension are `updated` events too, and change nothing of it. Their reasons tell them apart.
"""

from __future__ import annotations

from light_scheduler.model import EventType, HistoryEvent

_TRIGGERED = "triggered"
_EXTENDED = "extended"

_WITH_NEXT_DUE = {EventType.SCHEDULED, EventType.UPDATED, EventType.PAUSED, EventType.RESUMED, EventType.MOVED}


def defines(event: HistoryEvent) -> bool:
    """Return whether an event is that of a command that defined its schedule, or defined it anew."""
    if event.event is EventType.UPDATED:
        return not (event.reason or "").startswith((_TRIGGERED, _EXTENDED))
    return event.event is EventType.SCHEDULED


def tells_next_due(event: HistoryEvent) -> bool:
    """Return whether an event's due time is that of the next firing, and not of one that was delivered."""
    is_extension = event.event is EventType.UPDATED and (event.reason or "").startswith(_EXTENDED)
    return event.event in _WITH_NEXT_DUE and not is_extension
