"""Messages in dialects of other schedulers.

They name neither attempt nor version of their schedule, so they are identified by content: key, payload and headers.
All messages of a series can have the same content. Workers give a message the instant of its line in the history as
timestamp, so such messages are told apart by it, unless the broker sets the timestamps of their topic (LogAppendTime).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

import msgspec

from .faults import RecordId
from .overflow import LongMap

CREATE_TIME = 0
"""Kafka's number for timestamps that the sender of a record sets."""

_encode = msgspec.msgpack.Encoder().encode


class Content(NamedTuple):
    """The content of a message. `payload` and `headers` are digests; `headers` covers all headers of the message."""

    key: bytes | None
    payload: bytes | None
    headers: bytes

    @property
    def digest(self) -> bytes:
        return sha256(_encode(self)).digest()


class Source(NamedTuple):
    """What a message says about its command: it is in one of `topics`, in `partition` (None: not named)."""

    topics: frozenset[str]
    partition: int | None


class TracedMessage(NamedTuple):
    """A message in a target topic; `timestamp` is its record's (UTC epoch ms).

    `by_sender`: surely not the broker, but the sender has set the timestamp.
    """

    place: RecordId
    timestamp: int
    content: Content
    by_sender: bool

    def distance(self, instant: int) -> int:
        """Return the time between its record and an instant, in ms."""
        return abs(self.timestamp - instant)


class Sought(NamedTuple):
    """A firing in the history (at `place`) whose message does not name its schedule.

    `content` is the digest of the message expected in `topic`; `due` and `at` are UTC epoch ms; `asked_by` is as in a
    fault.
    """

    topic: str
    content: bytes
    due: int | None
    at: int
    place: RecordId
    asked_by: RecordId | None


class Promised(msgspec.Struct, frozen=True):
    """How many lines of the history promise a content; the first one was `due` (UTC epoch ms)."""

    number: int = 0
    due: int | None = None


class _InPartition(msgspec.Struct):
    """Messages that only their offsets tell apart."""

    partition: int
    by_sender: bool
    offsets: list[int]


class _Alike(msgspec.Struct):
    """Messages of one content in one topic with the same timestamp."""

    content: Content
    topic: str
    timestamp: int
    found: list[_InPartition]

    def messages(self) -> Iterator[TracedMessage]:
        for each in self.found:
            for offset in each.offsets:
                yield self._message(each, offset)

    def take(self, partition: int | None) -> TracedMessage | None:
        """Remove and return the first message whose sender has set its timestamp, if possible one in a partition."""
        fitting = [each for each in self.found if each.by_sender]
        each = min(fitting, key=lambda each: partition not in (None, each.partition), default=None)
        if each is None:
            return None
        offset = each.offsets.pop(0)
        if not each.offsets:
            self.found.remove(each)
        return self._message(each, offset)

    def _message(self, each: _InPartition, offset: int) -> TracedMessage:
        return TracedMessage(RecordId(self.topic, each.partition, offset), self.timestamp, self.content, each.by_sender)


_decode = msgspec.msgpack.Decoder(_Alike).decode
_decode_promised = msgspec.msgpack.Decoder(Promised).decode
_NEVER_PROMISED = Promised()


class TracedMessages:
    """A lane's messages of one schedule, by content, and which contents the history promises."""

    def __init__(self) -> None:
        self._alike: LongMap[tuple[bytes, str, int], _Alike] = LongMap(_encode, _decode)
        self._promised: LongMap[tuple[bytes], Promised] = LongMap(_encode, _decode_promised)
        self.is_empty = True
        """Whether no message was ever added."""

    def add(self, message: TracedMessage) -> None:
        """Add a message. Those of one partition have to come in the order of their offsets."""
        topic, partition, offset = message.place
        key = message.content.digest, topic, message.timestamp
        alike = self._alike.get(key) or _Alike(message.content, topic, message.timestamp, [])
        last = alike.found[-1] if alike.found else None
        if last is not None and (last.partition, last.by_sender) == (partition, message.by_sender):
            last.offsets.append(offset)
        else:
            alike.found.append(_InPartition(partition, message.by_sender, [offset]))
        self._alike.put(key, alike)
        self.is_empty = False

    def promise(self, content: bytes, due: int | None) -> None:
        """Note that a line of the history promises a content."""
        known = self.promised(content)
        self._promised.put((content,), Promised(known.number + 1, known.due if known.number else due))

    def promised(self, content: bytes) -> Promised:
        """Return what lines of the history promise of a content."""
        return self._promised.get((content,)) or _NEVER_PROMISED

    def take(self, content: bytes, topic: str, at: int, partition: int | None) -> TracedMessage | None:
        """Remove and return the message of a content that a worker sent at an instant, if possible in a partition."""
        alike = self._alike.get((content, topic, at))
        message = None if alike is None else alike.take(partition)
        if alike is None or message is None:
            return None
        if alike.found:
            self._alike.put((content, topic, at), alike)
        else:
            self._alike.drop((content, topic, at))
        return message

    def left(self) -> Iterator[TracedMessage]:
        """Yield the messages that were not taken, sorted by content, topic and time."""
        for alike in self._alike.in_order():
            yield from alike.messages()
