"""What is found outside of the scheduler's own topics: messages in target topics, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from light_scheduler.model import DeadLetterCause

from .faults import RecordId
from .overflow import LongMap
from .promises import Name


class Seen(NamedTuple):
    """A message in a target topic. `payload` and `headers` are digests, those of the user; `timestamp` is its record's
    (UTC epoch ms). `has_own_firing_id`: its header `schedule-firing-id` is that of its id and time. `told_key` is its
    header `schedule-key`.
    """

    place: RecordId
    timestamp: int
    due: int
    attempt: int
    version: int
    sequence: int
    fired_at: int
    source: RecordId
    original_due: int | None
    delivery_id: str | None
    has_own_firing_id: bool
    told_key: bytes | None
    key: bytes | None
    payload: bytes | None
    headers: bytes

    @property
    def name(self) -> Name:
        return self.due, self.attempt, self.version, self.sequence

    @property
    def early(self) -> int:
        """How many ms before it was due it was delivered; not above 0: it was not."""
        return self.due - min(self.fired_at, self.timestamp)


class FoundDeadLetter(NamedTuple):
    """A dead letter; `offset` is that of the command that it comes from."""

    place: RecordId
    cause: DeadLetterCause
    at: int
    due: int | None
    offset: int


class LeftOver(NamedTuple):
    """A message that no line of history was found to promise, and the topics to which history tells of its name."""

    seen: Seen
    promised_to: Sequence[str | None]


class _Firings(NamedTuple):
    """How many firings that were due at an instant have become dead letters for one cause."""

    cause: DeadLetterCause
    due: int | None
    number: int


class _OfOneName(msgspec.Struct):
    """Messages of one name that nothing in history has been found to promise yet.

    `sources` are the commands that they, and those that are promised already, name: those that no line of history has
    been held against yet. `promised_to` are the topics that history tells of the name; None: it tells of no topic.
    """

    messages: list[Seen]
    sources: list[int]
    promised_to: list[str | None] = []


_encode = msgspec.msgpack.Encoder().encode
_decode_messages = msgspec.msgpack.Decoder(_OfOneName).decode
_decode_firings = msgspec.msgpack.Decoder(_Firings).decode


class MessagesByName:
    """A lane's messages of one schedule, by name."""

    def __init__(self) -> None:
        self._by_name: LongMap[Name, _OfOneName] = LongMap(_encode, _decode_messages)

    def add(self, seen: Seen) -> None:
        of_name = self._by_name.get(seen.name) or _OfOneName([], [])
        of_name.messages.append(seen)
        of_name.sources.append(seen.source.offset)
        self._by_name.put(seen.name, of_name)

    def take_over(self, others: MessagesByName) -> None:
        """Add the messages of another lane, which has none then."""
        for each in others.left():
            self.add(each.seen)
        others._by_name = LongMap(_encode, _decode_messages)

    def source(self, name: Name) -> int | None:
        """Return the offset of the command that the next message of a name says it comes from."""
        of_name = self._by_name.get(name)
        return of_name.sources[0] if of_name is not None and of_name.sources else None

    def pass_source(self, name: Name) -> None:
        """Go on to the next message of a name."""
        of_name = self._by_name.get(name)
        if of_name is not None and of_name.sources:
            del of_name.sources[0]
            self._keep(name, of_name)

    def promised(self, name: Name, topic: str | None) -> list[Seen]:
        """Return the messages of a name, one of which may be what history tells of, and note to which topic that is."""
        of_name = self._by_name.get(name)
        if of_name is None:
            return []
        if topic not in of_name.promised_to:
            of_name.promised_to.append(topic)
            self._by_name.put(name, of_name)
        return list(of_name.messages)

    def take(self, seen: Seen) -> None:
        """Take the message out that was promised."""
        of_name = self._by_name.get(seen.name)
        assert of_name is not None, "it is among those of its name"
        of_name.messages.remove(seen)
        self._keep(seen.name, of_name)

    def left(self) -> Iterator[LeftOver]:
        """Yield the messages that were not taken."""
        for of_name in self._by_name.values():
            for seen in of_name.messages:
                yield LeftOver(seen, of_name.promised_to)

    def _keep(self, name: Name, of_name: _OfOneName) -> None:
        if of_name.messages or of_name.sources:
            self._by_name.put(name, of_name)
        else:
            self._by_name.drop(name)


class DeadLetters:
    """A lane's dead letters of one schedule. `rejected` are commands, the others firings."""

    def __init__(self) -> None:
        self.rejected: list[FoundDeadLetter] = []
        self._firings: LongMap[tuple[str, int | None], _Firings] = LongMap(_encode, _decode_firings)
        self._last_at = -1

    @property
    def last_at(self) -> int:
        """When the last one was written (UTC epoch ms); -1: there is none."""
        return max(self._last_at, *(letter.at for letter in self.rejected), -1)

    def add(self, letter: FoundDeadLetter) -> None:
        if letter.cause is DeadLetterCause.REJECTED:
            self.rejected.append(letter)
            return
        self._last_at = max(self._last_at, letter.at)
        self._count(letter.cause, letter.due, 1)

    def take_over_firings(self, others: DeadLetters) -> None:
        """Add the firings of another lane, which has none then."""
        self._last_at = max(self._last_at, others._last_at)
        for each in others._firings.values():
            self._count(*each)
        others._firings, others._last_at = LongMap(_encode, _decode_firings), -1

    def take(self, cause: DeadLetterCause, due: int | None) -> bool:
        """Take out that of a firing; return whether it was there."""
        if self._firings.get((cause.value, due)) is None:
            return False
        self._count(cause, due, -1)
        return True

    def _count(self, cause: DeadLetterCause, due: int | None, more: int) -> None:
        name = cause.value, due
        counted = self._firings.get(name)
        number = more if counted is None else counted.number + more
        if number:
            self._firings.put(name, _Firings(cause, due, number))
        else:
            self._firings.drop(name)
