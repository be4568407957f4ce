"""From the rows of a schedule to a case for each of its lanes.

History comes last, and is not kept: a schedule may have more of it than fits into memory. So may it have messages and
commands (`overflow`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Literal

from light_scheduler.errors import FormatError
from light_scheduler.model import Command, Entry, ScheduleCommand
from light_scheduler.wire import decode_history
from light_scheduler.wire.state import decode_entry

from .evidence import (
    COMMAND,
    HISTORY,
    IMPORTED,
    MOVED,
    SEEN,
    Row,
    dead_letter_of,
    decode_asked,
    encode_asked,
    seen_of,
)
from .faults import RecordId
from .found import DeadLetters, MessagesByName
from .overflow import LongList
from .promises import HistoryRecord, Refused
from .standing import Series
from .verdict import Case

ORDER = "lane", "kind", "topic", "partition", "offset"
"""The columns that the rows of a schedule are sorted by, in two parts: history comes last."""

Unjudged = Literal["ambiguous", "moved"]
"""Why a schedule cannot be judged: commands for it come in on several topics; or it was moved between lanes."""


def cases(rows: Iterable[Row], default_topic: str, whole_since: int) -> Iterator[tuple[int, Case | Unjudged]]:
    """Yield a case for each lane that has a part in a schedule's rows, or why that cannot be judged.

    History does not tell apart commands that come in on several topics, nor when a schedule left a lane. `whole_since`
    (UTC epoch ms) is since when neither commands nor history lack anything. The rows are sorted by ORDER, and the
    history of a case has to be read before the next case.
    """
    schedule, rows = _Schedule(), iter(rows)
    lines: Iterable[Row] = ()
    for row in rows:
        if row.kind == HISTORY:
            lines = chain((row,), rows)
            break
        schedule.add(row)
    schedule.bring_letters_home()
    schedule.bring_firings_home()
    for lane, of_lane in groupby(lines, key=lambda row: row.lane):
        yield lane, schedule.case(lane, default_topic, whole_since, HistoryLines(of_lane))
    for lane in schedule.others():
        yield lane, schedule.case(lane, default_topic, whole_since, HistoryLines(()))


class HistoryLines:
    """Lines of history in their order; `unreadable` counts those passed over so far, which are not the scheduler's."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.unreadable = 0

    def __iter__(self) -> Iterator[HistoryRecord]:
        for row in self._rows:
            try:
                event = decode_history(row.value)
            except FormatError:
                self.unreadable += 1
            else:
                yield HistoryRecord(event, RecordId(row.topic, row.partition, row.offset))


class _Lane:
    """One lane's records of a schedule, without its history."""

    def __init__(self) -> None:
        self.asked: LongList[Command] = LongList(encode_asked, _decode_command)
        self.refused: list[Refused] = []
        self.messages = MessagesByName()
        self.dead_letters = DeadLetters()
        self.imported: Entry | None = None
        self.series: Series | None = None
        self.topics: set[str] = set()
        self.unreadable = 0

    def add(self, row: Row) -> None:
        try:
            if row.kind == COMMAND:
                asked = decode_asked(row.value or b"")
                if isinstance(asked, Refused):
                    self.refused.append(asked)
                else:
                    self.asked.append(asked)
                self.topics.add(row.topic)
            elif row.kind == IMPORTED:
                self.imported = decode_entry(row.value or b"")
                self.series = None if row.key is None else Series.decode(row.key)
                self.topics.add(row.topic)
            elif row.kind == SEEN:
                self.messages.add(seen_of(row))
            else:
                self.dead_letters.add(dead_letter_of(row))
        except FormatError:  # of somebody else's making: whoever writes to a target topic may use our headers
            self.unreadable += 1

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left of the schedule, now that its firings are with another lane."""
        return not (self.topics or self.dead_letters.rejected or self.unreadable)


class _Schedule:
    """Records of a schedule, without its history, by lane."""

    def __init__(self) -> None:
        self._by_lane: defaultdict[int, _Lane] = defaultdict(_Lane)
        self._is_moved = False
        self._copies: dict[tuple[int, int], tuple[int, int]] = {}
        self._done: set[int] = set()

    def add(self, row: Row) -> None:
        self._by_lane[row.lane].add(row)
        if row.kind == COMMAND and row.key == MOVED:
            self._is_moved = True
        elif row.kind == COMMAND and row.key is not None:
            partition, offset = map(int, row.key.split(b":"))
            self._copies[partition, offset] = row.partition, row.offset

    def bring_letters_home(self) -> None:
        """Give dead letters of copied commands, which name the record that was sent, to the lane that has the copy."""
        for lane, found in list(self._by_lane.items()):
            for letter in [each for each in found.dead_letters.rejected if (lane, each.offset) in self._copies]:
                found.dead_letters.rejected.remove(letter)
                home, offset = self._copies[lane, letter.offset]
                self._by_lane[home].dead_letters.add(letter._replace(offset=offset))

    def bring_firings_home(self) -> None:
        """Give firings of imported schedules, which name the lane that these were defined in, to the lane they are in.

        If schedules of that lane may have fired, too, nobody can tell them apart, and they count as moved.
        """
        for lane, found in list(self._by_lane.items()):
            before = lane if found.imported is None else found.imported.schedule.source_partition
            if before == lane or before not in self._by_lane:
                continue
            if self._may_fire(before):
                self._is_moved = True
                return
            there = self._by_lane[before]
            found.messages.take_over(there.messages)
            found.dead_letters.take_over_firings(there.dead_letters)
            if there.is_empty:
                del self._by_lane[before]

    def _may_fire(self, lane: int) -> bool:
        """Return whether a lane has been given the schedule."""
        found = self._by_lane[lane]
        return found.imported is not None or any(
            isinstance(asked, ScheduleCommand) and (lane, asked.offset) not in self._copies for asked in found.asked
        )

    def case(self, lane: int, default_topic: str, whole_since: int, history: HistoryLines) -> Case | Unjudged:
        """Return the case of a lane, or why it cannot be judged."""
        self._done.add(lane)
        found = self._by_lane[lane]
        if self._is_moved or len(found.topics) > 1:
            return "moved" if self._is_moved else "ambiguous"
        return Case(
            found.asked,
            found.refused,
            history,
            found.messages,
            found.dead_letters,
            next(iter(found.topics), default_topic),
            {offset for partition, offset in self._copies if partition == lane},
            whole_since,
            found.unreadable,
            found.imported,
            found.series,
            any(other.dead_letters.rejected for other in self._by_lane.values() if other is not found),
        )

    def others(self) -> list[int]:
        """Return the lanes of which there has been no case."""
        return [lane for lane in self._by_lane if lane not in self._done]


def _decode_command(value: bytes) -> Command:
    asked = decode_asked(value)
    assert not isinstance(asked, Refused), "those are kept apart"
    return asked
