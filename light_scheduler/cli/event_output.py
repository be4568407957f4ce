"""Prints events of the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from msgspec import UNSET

from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import encode_history, format_instant

from .output import Output
from .schedule_output import shown


@contextmanager
def events_printer(output: Output) -> Iterator[Callable[[HistoryEvent], None]]:
    """Yield a function that prints one event as a line, for people or as JSON Lines."""
    if output.is_table:
        yield lambda event: click.echo(shown(event_line(event)).plain)
        return
    with output.rows() as rows:
        yield lambda event: rows.print(encode_history(event))


def event_line(event: HistoryEvent) -> str:
    """Format an event as one line, with times in UTC."""
    if event.event is EventType.CHANGED:
        return f"{format_instant(event.at)} {event.event.value:<13} {event.reason}{_by(event)}"
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
    return " ".join(parts) + _by(event)


def _by(event: HistoryEvent) -> str:
    if event.by is UNSET:
        return ""
    return f" by {event.by}" + (f" from {event.address}" if event.address else "")
