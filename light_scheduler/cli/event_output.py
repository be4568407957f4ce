"""How events of the history are shown."""

from __future__ import annotations

from msgspec import UNSET

from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import format_instant


def event_line(event: HistoryEvent) -> str:
    """Show an event in one line, with times in UTC."""
    parts = [format_instant(event.at), f"{event.event.value:<13}", f"{event.tenant}/{event.id or '?'}"]
    if event.version is not None:
        parts.append(f"v{event.version}")
    if event.due is not None:
        parts.append(f"due {format_instant(event.due)}")
    if event.event is EventType.FIRED and event.due is not None:
        parts.append(f"(+{event.at - event.due} ms)")
    if event.target_topic:
        parts.append(f"-> {event.target_topic}")
    if event.reason:
        parts.append(f"({event.reason})")
    if event.by is not UNSET:
        parts.append(f"by {event.by}" + (f" from {event.address}" if event.address else ""))
    return " ".join(parts)
