"""The state of a schedule at the end of an audit, which replaces its records in the next audit.

A schedule that has ended leaves nothing. A pending schedule whose records are all explained leaves its entry. In any
other case, such as a command that no worker has read yet, all records are kept, and there is no standing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from light_scheduler.model import Entry, EventType, FixedRate, ScheduleCommand

from .promises import Asked, HistoryRecord, Refused
from .replay import Replay

DEALT_WITH = frozenset(
    {EventType.FIRED, EventType.SKIPPED, EventType.EXPIRED, EventType.MISSED, EventType.DEAD_LETTERED}
)
"""Events of which the history has one for each past time of a series."""


class Series(NamedTuple):
    """A series at a fixed rate whose times Spark checks: its interval (ms) and the next time (UTC epoch ms)."""

    interval: int
    next: int

    def encode(self) -> bytes:
        """Encode it as the key of a row of evidence."""
        return b"%d:%d" % self

    @classmethod
    def decode(cls, key: bytes) -> Series:
        """Decode it."""
        return cls(*map(int, key.split(b":")))


class Standing(NamedTuple):
    """The schedule as it is pending, None if it is not; and the series that it is, if Spark checks it."""

    entry: Entry | None
    series: Series | None


def standing_of(
    replay: Replay, asked: Sequence[Asked], recorded: Sequence[HistoryRecord], before: Series | None
) -> Standing | None:
    """Return how a schedule stands after a replay; None if something about it is open. `before` is the series that it
    was in the audit before this one.
    """
    state = replay.rest
    if state is None:
        return None
    entry = state.entry
    if entry is None:
        return Standing(None, None)
    if entry.progress.wakes_at < state.since:  # the next firing is late only from when its command came
        return None
    return Standing(entry, _series(asked, recorded, before))


def rate_of(asked: Asked) -> tuple[int, int | None] | None:
    """Return the interval and the start (or None) of a series that Spark can expand, else None."""
    if not isinstance(asked, ScheduleCommand) or not isinstance(asked.timing, FixedRate):
        return None
    bounds, waits = asked.bounds, asked.acknowledgement
    if (bounds is not None and bounds.jitter) or (waits is not None and waits.overlap != "allow"):
        return None
    return asked.timing.interval, None if bounds is None else bounds.start


def _series(asked: Sequence[Asked], recorded: Sequence[HistoryRecord], before: Series | None) -> Series | None:
    others = [each for each in asked if isinstance(each, Refused) or each.name != "cancel"]
    if before is None and len(others) == 1:
        before = _begun(others[0], recorded)
        others = []
    if before is None or others:
        return None
    ends = [
        event.due + ((event.count or 1) - 1) * before.interval
        for event, _ in recorded
        if event.event in DEALT_WITH and event.attempt == 1 and event.due is not None
    ]
    steps = max(0, (max(ends, default=before.next - 1) - before.next) // before.interval + 1)
    return before._replace(next=before.next + steps * before.interval)


def _begun(asked: Asked, recorded: Sequence[HistoryRecord]) -> Series | None:
    """Return the series that a command begins, by arithmetic of its own, as Spark's `sequence` has it."""
    rate = rate_of(asked)
    begins = [event.at for event, _ in recorded if event.event is EventType.SCHEDULED]
    if rate is None or len(begins) != 1:
        return None
    interval, start = rate
    begun = min(asked.recorded_at, begins[0])
    anchor = begun if start is None else start
    if start is not None and start >= begun:
        return Series(interval, start)
    return Series(interval, anchor + ((begun - anchor) // interval + 1) * interval)
