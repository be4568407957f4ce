"""Events that a lane reports to traces, once their transaction is committed.

If the command of a schedule came with a sampled `traceparent` (W3C Trace Context), each history event of the schedule
is reported. Nothing is collected without a receiver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from light_scheduler.model import Entry, EventType

TRACEPARENT = "traceparent"
_SAMPLED = 0x01


class TracedEvent(NamedTuple):
    """An event of a schedule, and the `traceparent` of its command."""

    event: EventType
    entry: Entry
    traceparent: str
    reason: str | None


class TracedCycle(NamedTuple):
    """A committed cycle with traced events; from when it was decided to when it was committed (UTC epoch ms)."""

    topic: str
    partition: int
    begun: int
    committed: int
    commands: int
    firings: int
    events: Sequence[TracedEvent]


class Tracing(Protocol):
    """The receiver of traced cycles. An error would fail the lane, so it must not raise, nor wait."""

    def tell(self, cycle: TracedCycle) -> None: ...


def trace_id_of(entry: Entry) -> str | None:
    """Return the id of the trace that a schedule's command belongs to, if it is one that is recorded."""
    parent = sampled_parent(entry)
    return None if parent is None else parent.split("-")[1]


def sampled_parent(entry: Entry) -> str | None:
    """Return the `traceparent` of a schedule's command, if it says that its trace is recorded."""
    for name, value in entry.schedule.headers:
        if name == TRACEPARENT and value is not None:
            try:
                text = value.decode("ascii")
                return text if int(text.split("-")[3], 16) & _SAMPLED else None
            except (UnicodeDecodeError, IndexError, ValueError):
                return None
    return None
