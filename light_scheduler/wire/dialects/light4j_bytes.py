"""Tasks of light-4j in their published schema, changed byte by byte: to decode and encode one takes four times as long.

    host  name    text
    action        index in the enum, as a number
    frequency     0: null; or 2, index of the unit and time, as numbers
    topic         text
    start         0: null; or 2, and a number
    data          0: null; or 2, and a map of texts

Numbers, texts and maps are those of `avro_bytes`. What is unusual is left to the decoder, a long name too.
"""

from __future__ import annotations

from typing import NamedTuple

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant, natural

UNITS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
"""Time units in the order of their enum, in ms."""


LONGEST_KIND = 80
"""Bytes of a kind: all that is usual takes fewer, and kinds are remembered."""

TaskBytes = tuple[str, str, int, bytes, int | None, int, int]
"""Host and name of a task, where the name ends, its kind, its start, and where that begins and ends. A plain tuple, for
one is made for nearly every command.
"""


class Kind(NamedTuple):
    """The fields between name and start of a task. `action` and `unit` are indexes in their enums."""

    action: int
    unit: int
    time: int
    topic: str


def task_bytes(body: bytes) -> TaskBytes | None:
    """Read a task that has a frequency; None if a decoder has to read it, or to say what is wrong with it.

    The kind has not been looked at: it may be none.
    """
    try:
        size = body[0]
        host_end = 1 + (size >> 1)
        name_size = body[host_end]
        name_end = host_end + 1 + (name_size >> 1)
        if (size | name_size) & ODD_OR_LONG or not size:
            return None
        at = name_end + 3
        while body[at] >= LONG:  # the time
            at += 1
        start_at = at + 2 + (body[at + 1] >> 1)
        if start_at - name_end > LONGEST_KIND:
            return None
        end = start_at + 1
        start = None
        if body[start_at] == UNION_SECOND:
            start, end = instant(body, end)
        elif body[start_at]:
            return None
        if _end_of_data(body, end) != len(body):
            return None
        host, name = body[1:host_end].decode(), body[host_end + 1 : name_end].decode()
    except UNREADABLE:
        return None
    return host, name, name_end, body[name_end:start_at], start, start_at, end


def kind_of(body: bytes) -> Kind | None:
    """Read a task's kind; None if a decoder has to read the task."""
    try:
        action, unit = body[0], body[2]
        time, at = natural(body, 3)
        size = body[at]
        if (action | unit | size) & ODD_OR_LONG or body[1] != UNION_SECOND or at + 1 + (size >> 1) != len(body):
            return None
        return Kind(action >> 1, unit >> 1, time, body[at + 1 :].decode())
    except UNREADABLE:
        return None


def with_start(body: bytes, task: TaskBytes, start: int) -> bytes:
    """Return a task with another start, at least 0."""
    *_, start_at, start_end = task
    rest = start << 1
    written = bytearray((UNION_SECOND,))
    while rest >= LONG:
        written.append(rest & 0x7F | LONG)
        rest >>= 7
    written.append(rest)
    return body[:start_at] + written + body[start_end:]


def _end_of_data(body: bytes, at: int) -> int:
    """Return where a map, or null, ends. Raises ValueError for one that a decoder has to read, or to refuse."""
    if not body[at]:
        return at + 1
    count = body[at + 1]
    if body[at] != UNION_SECOND or count & ODD_OR_LONG:
        raise ValueError
    at += 2
    keys: list[bytes] = []
    for _ in range(count >> 1):
        # As `text` reads it: a call takes longer than all of this.
        size, begin = body[at], at + 1
        if size & ODD_OR_LONG:
            size, begin = natural(body, at)
            at = begin + size
        else:
            at = begin + (size >> 1)
        key = body[begin:at]
        if count > 2:
            keys.append(key)
        size, begin = body[at], at + 1
        if size & ODD_OR_LONG:
            size, begin = natural(body, at)
            at = begin + size
        else:
            at = begin + (size >> 1)
        if not key.isascii() or not body[begin:at].isascii():
            key.decode()
            body[begin:at].decode()
    if not count:
        return at
    if body[at] or (count > 2 and len({*keys}) != len(keys)):
        raise ValueError
    return at + 1
