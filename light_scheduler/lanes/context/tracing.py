"""The events that a lane reports to traces once their transaction is committed.

If the command of a schedule came with a sampled `traceparent` (W3C Trace Context), each history event of the schedule
is reported. Without a receiver, nothing is collected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from light_scheduler.model import Entry, EventType

TRACEPARENT = "traceparent"
_SAMPLED = 0x01
_FORMAT = re.compile(
    rb"""
    ( (?!ff) [0-9a-f]{2}          # version; after 00 nothing may follow the flags, after later ones more fields
    - (?!0{32}) [0-9a-f]{32}      # trace id
    - (?!0{16}) [0-9a-f]{16}      # id of the sender's span
    - [0-9a-f]{2} )               # flags
    (?: \Z | (?<!\A00.{53}) - )
    """,
    re.VERBOSE | re.DOTALL,
)


class TracedEvent(NamedTuple):
    """An event of a schedule, and the `traceparent` of its command."""

    event: EventType
    entry: Entry
    traceparent: str
    reason: str | None


class TracedCycle(NamedTuple):
    """A committed cycle with traced events. It decided at `begun`, and ended at `committed` (UTC epoch ms)."""

    topic: str
    partition: int
    begun: int
    committed: int
    commands: int
    firings: int
    events: Sequence[TracedEvent]


class Tracing(Protocol):
    """The receiver of traced cycles. It must neither raise, which would fail the lane, nor block."""

    def record(self, cycle: TracedCycle) -> None: ...


def trace_id_of(entry: Entry) -> str | None:
    """Return the id of the trace that a schedule's command belongs to, if that trace is sampled."""
    parent = sampled_parent(entry)
    return None if parent is None else parent.split("-")[1]


def sampled_parent(entry: Entry) -> str | None:
    """Return the `traceparent` of a schedule's command, if its trace is sampled.

    For versions after 00, return only the fields of 00, as W3C Trace Context requires. So the length is fixed.
    """
    for name, value in entry.schedule.headers:
        if name == TRACEPARENT and value is not None:
            found = _FORMAT.match(value)
            return None if found is None or not int(found[1][-2:], 16) & _SAMPLED else found[1].decode("ascii")
    return None
