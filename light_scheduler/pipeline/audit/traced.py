"""Messages in dialects of other schedulers.

They name neither attempt nor version of their schedule, so they are identified by content: key, payload and headers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from .faults import RecordId
from .overflow import LongMap

_encode = msgspec.msgpack.Encoder().encode


class Content(NamedTuple):
    """The content of a message. `payload` and `headers` are digests; `headers` covers all headers of the message."""

    key: bytes | None
    payload: bytes | None
    headers: bytes

    @property
    def digest(self) -> bytes:
        return sha256(_encode(self)).digest()


class TracedMessage(NamedTuple):
    """A message in a target topic; `timestamp` is its record's (UTC epoch ms).

    Its command is in one of `topics`, in `partition` (None: the message does not name it).
    """

    place: RecordId
    timestamp: int
    content: Content
    topics: frozenset[str]
    partition: int | None

    def distance(self, instant: int) -> int:
        """Return the time between its record and an instant, in ms."""
        return abs(self.timestamp - instant)


class LeftTraced(NamedTuple):
    """A message that matches no line of history.

    `is_promised`: a line of history did match a message of the same content, which was `due` then (UTC epoch ms).
    """

    message: TracedMessage
    is_promised: bool
    due: int | None


class Sought(NamedTuple):
    """A firing in the history (at `place`) whose message does not name its schedule.

    `content` is the digest of the message expected in `topic`; `due` and `at` are UTC epoch ms.
    """

    topic: str
    content: bytes
    due: int | None
    at: int
    place: RecordId


class _OfOneContent(msgspec.Struct):
    """Messages of one content that match no line of history yet.

    `is_promised`: a line of history promises this content; the last one was `due` then (UTC epoch ms).
    """

    messages: list[TracedMessage]
    is_promised: bool = False
    due: int | None = None


_decode = msgspec.msgpack.Decoder(_OfOneContent).decode


class TracedMessages:
    """A lane's messages of one schedule, by content."""

    def __init__(self) -> None:
        self._by_content: LongMap[tuple[bytes], _OfOneContent] = LongMap(_encode, _decode)
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, message: TracedMessage) -> None:
        of_content = self._of(message.content)
        of_content.messages.append(message)
        self._put(message.content, of_content)
        self._number += 1

    def promised(self, content: Content, due: int | None) -> Sequence[TracedMessage]:
        """Return the messages of a content that a line of history promises, and remember that it is promised."""
        of_content = self._of(content)
        of_content.is_promised, of_content.due = True, due
        self._put(content, of_content)
        return list(of_content.messages)

    def take(self, message: TracedMessage) -> None:
        """Remove a message: it matches a line of history."""
        of_content = self._of(message.content)
        of_content.messages.remove(message)
        self._put(message.content, of_content)
        self._number -= 1

    def left(self) -> Iterator[LeftTraced]:
        """Yield the messages that match no line of history."""
        for of_content in self._by_content.values():
            for message in of_content.messages:
                yield LeftTraced(message, of_content.is_promised, of_content.due)

    def _of(self, content: Content) -> _OfOneContent:
        return self._by_content.get((content.digest,)) or _OfOneContent([])

    def _put(self, content: Content, of_content: _OfOneContent) -> None:
        self._by_content.put((content.digest,), of_content)
