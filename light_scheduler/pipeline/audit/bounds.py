"""What an audit judges: a period, and as much of topics as they still have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from light_scheduler.pipeline.lag import LAG_MS

from .faults import RecordId
from .found import Seen


class Bounds(NamedTuple):
    """The period that is judged, `start` to `end` (UTC epoch ms). `patience` (ms) is the accepted lateness.

    Firings are counted from `counted` on: the previous audit has counted earlier ones. It has `read` these topics: each
    partition up to and without an offset. Up to those in `written` there are all messages of the history that was read,
    and this audit has read as far.
    """

    start: int
    end: int
    patience: int
    counted: int = 0
    read: Mapping[str, Mapping[int, int]] = {}
    written: Mapping[str, Mapping[int, int]] = {}

    @property
    def first_read(self) -> int:
        """The instant from which targets are read: firings in the history since `start` were recorded after it."""
        return max(0, self.start - LAG_MS)

    def hold(self, instant: int) -> bool:
        return self.start <= instant <= self.end

    def count(self, instant: int) -> bool:
        return max(self.start, self.counted) <= instant <= self.end

    def have_read(self, place: RecordId) -> bool:
        """Return whether the previous audit has read a record."""
        return place.offset < self.read.get(place.topic, {}).get(place.partition, 0)

    def is_of_later_line(self, place: RecordId) -> bool:
        """Return whether a message was surely written after all lines of the history that was read."""
        end = self.written.get(place.topic, {}).get(place.partition)
        return end is not None and end <= place.offset


class Horizon(NamedTuple):
    """The instant (UTC epoch ms) since which a topic surely has all records written to it; None: unknown.

    `history` has it for those partitions of the history that have lost their beginning; of how many, if that is known.
    """

    targets: Mapping[str, int | None]
    dead_letters: int | None
    history: Mapping[int, int] | None = None
    history_partitions: int | None = None

    def may_lack_history_of(self, seen: Seen, *, is_forwarded: bool = False) -> bool:
        """Return whether a message may be one that the history told of, in a line that is gone.

        A copy that was made later is none: its record is younger than its header says. One that a delay rule has
        forwarded is younger in any case.
        """
        is_in_time = is_forwarded or seen.timestamp <= seen.fired_at + LAG_MS
        return is_in_time and self.may_lack_lines(seen.source.partition, seen.fired_at)

    def may_lack_lines(self, lane: int | None, instant: int) -> bool:
        """Return whether lines of an instant may be gone, of a lane or (None) of any."""
        of = self.history_partitions
        part = None if lane is None or of is None else lane % of
        begins = [since for partition, since in (self.history or {}).items() if part in (None, partition)]
        return instant <= max(begins, default=-LAG_MS - 1) + LAG_MS

    def reaches(self, topic: str | None, instant: int) -> bool:
        start = self.targets.get(topic or "")
        return start is not None and start <= instant
