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

from .case import Case
from .commands_topics import CommandsTopics
from .evidence import (
    ANY_LANE,
    COMMAND,
    HISTORY,
    IMPORTED,
    MOVED,
    SEEN,
    TRACED,
    UNREAD,
    Row,
    dead_letter_of,
    decode_asked,
    encode_asked,
    seen_of,
    traced_of,
)
from .faults import RecordId
from .found import DeadLetters, MessagesByName
from .overflow import LongList
from .promises import HistoryRecord, Refused
from .standing import Series
from .traced import Source, TracedMessage, TracedMessages

ORDER = "lane", "kind", "topic", "partition", "offset"
"""The columns that the rows of a schedule are sorted by, in two parts: history comes last."""

Unjudged = Literal["ambiguous", "moved", "unread"]
"""Why a schedule cannot be judged: its commands, or those that its messages may be of, come in on several topics or in
several lanes; or it was moved between lanes; or a command for it can be read by a worker alone.
"""


def cases(rows: Iterable[Row], topics: CommandsTopics) -> Iterator[tuple[int, Case | Unjudged]]:
    """Yield a case for each lane that has a part in a schedule's rows, or why that cannot be judged.

    The lane is ANY_LANE for messages in dialects of other schedulers whose commands are not there.

    History does not tell apart commands that come in on several topics, nor when a schedule left a lane. The rows are
    sorted by ORDER, and the history of a case has to be read before the next case.
    """
    schedule, rows = _Schedule(topics), iter(rows)
    lines: Iterable[Row] = ()
    for row in rows:
        if row.kind == HISTORY:
            lines = chain((row,), rows)
            break
        schedule.add(row)
    schedule.bring_letters_home()
    schedule.bring_firings_home()
    for lane, of_lane in groupby(lines, key=lambda row: row.lane):
        yield lane, schedule.case(lane, HistoryLines(of_lane))
    for lane in schedule.others():
        yield lane, schedule.case(lane, HistoryLines(()))


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
        self.traced = TracedMessages()
        self.dead_letters = DeadLetters()
        self.imported: Entry | None = None
        self.series: Series | None = None
        self.topics: set[str] = set()
        self.unread: set[int] = set()
        """Offsets of commands that a worker may read by a schema of its registry."""
        self.unreadable = 0

    def add(self, row: Row) -> None:
        try:
            if row.kind == COMMAND:
                asked = decode_asked(row.value or b"")
                if isinstance(asked, Refused):
                    self.refused.append(asked)
                    if row.key == UNREAD:
                        self.unread.add(asked.offset)
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
    def was_read(self) -> bool:
        """Whether nothing but a rejection was made of commands that nothing here can read."""
        return not self.unread or self.unread <= {letter.offset for letter in self.dead_letters.rejected}

    def may_send(self, source: Source, lane: int) -> bool:
        """Return whether a message that says this about its command may be of the schedule in this lane."""
        defined_in = lane if self.imported is None else self.imported.schedule.source_partition
        return not self.topics.isdisjoint(source.topics) and source.partition in (None, lane, defined_in)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left of the schedule, now that its firings are with another lane."""
        return not (self.topics or self.dead_letters.rejected or self.unreadable)


class _Schedule:
    """Records of a schedule, without its history, by lane."""

    def __init__(self, topics: CommandsTopics) -> None:
        self._topics = topics
        self._by_lane: defaultdict[int, _Lane] = defaultdict(_Lane)
        self._is_moved = False
        self._is_ambiguous = False
        self._is_unknown = False
        """Whether history tells of the schedule in a lane that has no command for it."""
        self._copies: dict[tuple[int, int], tuple[int, int]] = {}
        self._done: set[int] = set()

    def add(self, row: Row) -> None:
        if row.kind == TRACED:
            self._add_traced(*traced_of(row))
            return
        self._by_lane[row.lane].add(row)
        if row.kind == COMMAND and row.key == MOVED:
            self._is_moved = True
        elif row.kind == COMMAND and row.key not in (None, UNREAD):
            partition, offset = map(int, (row.key or b"").split(b":"))
            self._copies[partition, offset] = row.partition, row.offset

    def _add_traced(self, message: TracedMessage, source: Source) -> None:
        """Give a message to the lane that has its schedule; all of them are known by now."""
        homes = [lane for lane, found in self._by_lane.items() if found.may_send(source, lane)]
        self._is_ambiguous = self._is_ambiguous or len(homes) > 1
        self._by_lane[homes[0] if homes else ANY_LANE].traced.add(message)

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

    def case(self, lane: int, history: HistoryLines) -> Case | Unjudged:
        """Return the case of a lane, or why it cannot be judged."""
        self._done.add(lane)
        found = self._by_lane[lane]
        if self._is_moved:
            return "moved"
        if self._is_ambiguous or len(found.topics) > 1:
            return "ambiguous"
        if not found.was_read:
            return "unread"
        topic = next(iter(found.topics), None)
        self._is_unknown = self._is_unknown or (topic is None and lane != ANY_LANE)
        return Case(
            found.asked,
            found.refused,
            history,
            found.messages,
            found.dead_letters,
            topic or self._topics.default,
            {offset for partition, offset in self._copies if partition == lane},
            self._topics.since(topic),
            found.unreadable,
            found.imported,
            found.series,
            any(other.dead_letters.rejected for other in self._by_lane.values() if other is not found),
            found.traced,
            None if topic is None else self._topics.others.of(topic),
            is_partial=self._topics.is_compacted(topic),
            is_unknown=self._is_unknown and self._may_be_of_another(topic),
        )

    def _may_be_of_another(self, topic: str | None) -> bool:
        """Return whether a schedule without a command may have had one in the dialect of another scheduler."""
        return topic is None and (not self._topics.others.all_leave_traces or ANY_LANE in self._by_lane)

    def others(self) -> list[int]:
        """Return the lanes of which there has been no case."""
        return [lane for lane in self._by_lane if lane not in self._done]


def _decode_command(value: bytes) -> Command:
    asked = decode_asked(value)
    assert not isinstance(asked, Refused), "those are kept apart"
    return asked
