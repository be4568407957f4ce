"""The state of a schedule at the end of an audit, which replaces its records in the next audit.

A schedule that has ended leaves nothing. A pending schedule whose records are all explained leaves its entry. In any
other case, such as a command that no worker has read yet, all records are kept, and there is no standing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from light_scheduler.model import Command, Entry, EventType, FixedRate, HistoryEvent, ScheduleCommand

from .promises import Asked, Refused
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


class Course:
    """How far a series has come by its history, which is taken line by line.

    `asked` and `refused` are the commands to its schedule; `before` is the series that it was in the previous audit.
    """

    def __init__(self, asked: Iterable[Command], refused: Sequence[Refused], before: Series | None) -> None:
        others: list[Asked] = list(islice((each for each in asked if each.name != "cancel"), 2))
        others += refused
        self._before = None if others else before
        self._begins_with = others[0] if before is None and len(others) == 1 else None
        rate = None if self._begins_with is None else rate_of(self._begins_with)
        self._interval = before.interval if before is not None else rate[0] if rate is not None else 0
        self._scheduled: list[int] = []
        self._last: int | None = None
        self.first_at: int | None = None
        """When the first line was written (UTC epoch ms); None: there is none."""
        self.last_at = -1
        """The latest instant (UTC epoch ms) of all lines; -1: there are none."""

    def take(self, event: HistoryEvent) -> None:
        self.first_at = event.at if self.first_at is None else self.first_at
        self.last_at = max(self.last_at, event.at)
        if event.event is EventType.SCHEDULED and len(self._scheduled) < 2:
            self._scheduled.append(event.at)
        if event.event in DEALT_WITH and event.attempt == 1 and event.due is not None:
            end = event.due + ((event.count or 1) - 1) * self._interval
            self._last = end if self._last is None else max(self._last, end)

    def series(self) -> Series | None:
        """Return the series as it is after that; None if it is none that Spark checks."""
        series = self._before or self._begun()
        if series is None:
            return None
        last = series.next - 1 if self._last is None else self._last
        steps = max(0, (last - series.next) // series.interval + 1)
        return series._replace(next=series.next + steps * series.interval)

    def _begun(self) -> Series | None:
        """Return the series that a command begins, by arithmetic of its own, as Spark's `sequence` has it."""
        asked = self._begins_with
        rate = None if asked is None else rate_of(asked)
        if asked is None or rate is None or len(self._scheduled) != 1:
            return None
        interval, start = rate
        begun = min(asked.recorded_at, self._scheduled[0])
        anchor = begun if start is None else start
        if start is not None and start >= begun:
            return Series(interval, start)
        return Series(interval, anchor + ((begun - anchor) // interval + 1) * interval)


def standing_of(replay: Replay, course: Course) -> Standing | None:
    """Return how a schedule stands after a replay; None if something about it is open."""
    state = replay.rest
    if state is None:
        return None
    entry = state.entry
    if entry is None:
        return Standing(None, None)
    if entry.progress.wakes_at < state.since:  # the next firing is late only from when its command came
        return None
    return Standing(entry, course.series())


def rate_of(asked: Asked) -> tuple[int, int | None] | None:
    """Return the interval and the start (or None) of a series that Spark can expand, else None."""
    if not isinstance(asked, ScheduleCommand) or not isinstance(asked.timing, FixedRate):
        return None
    bounds, waits = asked.bounds, asked.acknowledgement
    if (bounds is not None and bounds.jitter) or (waits is not None and waits.overlap != "allow"):
        return None
    return asked.timing.interval, None if bounds is None else bounds.start
