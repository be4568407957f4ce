"""Tasks of light-4j in their published schema, changed byte by byte: to decode and encode one takes four times as long.

    host  name    text: twice its length, UTF-8
    action        index in the enum, times 2
    frequency     0: null; or 2, index of the unit times 2, time as a long
    topic         text
    start         0: null; or 2, and a long
    data          0: null; or 2, twice the number of entries, key and value of each as text, 0

A long is zigzag: twice the number, in groups of 7 bits, the lowest first, with 0x80 set in all but the last. Whatever
is unusual is left to the decoder: a negative number, a long name, several blocks of entries, a byte more than needed.
"""

from __future__ import annotations

from typing import NamedTuple

_LONG = 0x80
_ODD_OR_LONG = 0x81
_UNION_SECOND = 2
_MOST_BITS = 56


class TaskBytes(NamedTuple):
    """What a task says, and where its start is. `action` and `unit` are indexes in their enums; `start` may be None."""

    host: str
    name: str
    action: int
    unit: int
    time: int
    topic: str
    start: int | None
    start_at: int
    start_end: int


def task_bytes(body: bytes) -> TaskBytes | None:
    """Read a task that has a frequency; None if a decoder has to read it, or to say what is wrong with it."""
    try:
        host, at = _short_text(body, 0)
        name, at = _short_text(body, at)
        action, unit = body[at], body[at + 2]
        if not host or action & _ODD_OR_LONG or unit & _ODD_OR_LONG or body[at + 1] != _UNION_SECOND:
            return None
        time, at = _natural(body, at + 3)
        topic, start_at = _short_text(body, at)
        start, at = (None, start_at + 1)
        if body[start_at] == _UNION_SECOND:
            start, at = _natural(body, at)
        elif body[start_at]:
            return None
        if _end_of_data(body, at) != len(body):
            return None
    except (IndexError, ValueError):  # it ends too soon, or is no text
        return None
    return TaskBytes(host, name, action >> 1, unit >> 1, time, topic, start, start_at, at)


def with_start(body: bytes, task: TaskBytes, start: int) -> bytes:
    """Return a task with another start, at least 0."""
    rest = start << 1
    written = bytearray((_UNION_SECOND,))
    while rest >= _LONG:
        written.append(rest & 0x7F | _LONG)
        rest >>= 7
    written.append(rest)
    return body[: task.start_at] + written + body[task.start_end :]


def _short_text(body: bytes, at: int) -> tuple[str, int]:
    """Return a text of less than 64 bytes, and where it ends. Raises ValueError for another one."""
    size = body[at]
    if size & _ODD_OR_LONG:
        raise ValueError
    end = at + 1 + (size >> 1)
    return body[at + 1 : end].decode(), end


def _natural(body: bytes, at: int) -> tuple[int, int]:
    """Return a number that is not negative, and where it ends. Raises ValueError for another one."""
    byte = body[at]
    if not byte & _ODD_OR_LONG:
        return byte >> 1, at + 1
    number, shift = byte & 0x7F, 7
    while byte & _LONG:
        at += 1
        byte = body[at]
        number |= (byte & 0x7F) << shift
        shift += 7
    if number & 1 or shift > _MOST_BITS or (shift > 7 and not byte):
        raise ValueError
    return number >> 1, at + 1


def _end_of_data(body: bytes, at: int) -> int:
    """Return where a map, or null, ends. Raises ValueError for one in several blocks, or that names a key twice."""
    if not body[at]:
        return at + 1
    count = body[at + 1]
    if body[at] != _UNION_SECOND or count & _ODD_OR_LONG:
        raise ValueError
    at += 2
    keys = set()
    for _ in range(count >> 1):
        size, begin = _natural(body, at)
        keys.add(body[begin : begin + size].decode())
        size, begin = _natural(body, begin + size)
        at = begin + size
        body[begin:at].decode()
    if not count:
        return at
    if body[at] or len(keys) != count >> 1:
        raise ValueError
    return at + 1
