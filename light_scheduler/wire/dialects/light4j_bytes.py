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

UNITS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
"""Time units in the order of their enum, in ms."""

_LONG = 0x80
_ODD_OR_LONG = 0x81
_UNION_SECOND = 2
_MOST_BITS = 56


class TaskBytes(NamedTuple):
    """The fields of a task, and the positions of its name's end and of its start.

    `action` and `unit` are indexes in their enums; `start` may be None.
    """

    host: str
    name: str
    name_end: int
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
        host_end = 1 + (body[0] >> 1)
        name_end = host_end + 1 + (body[host_end] >> 1)
        action, unit = body[name_end], body[name_end + 2]
        if (body[0] | body[host_end] | action | unit) & _ODD_OR_LONG or body[name_end + 1] != _UNION_SECOND:
            return None
        time, at = _natural(body, name_end + 3)
        size = body[at]
        start_at = at + 1 + (size >> 1)
        start, end = (None, start_at + 1)
        if body[start_at] == _UNION_SECOND:
            start, end = _natural(body, end)
        elif body[start_at]:
            return None
        if size & _ODD_OR_LONG or host_end == 1 or _end_of_data(body, end) != len(body):
            return None
        host, name = body[1:host_end].decode(), body[host_end + 1 : name_end].decode()
        topic = body[at + 1 : start_at].decode()
    except (IndexError, ValueError):  # it ends too soon, or is no text
        return None
    return TaskBytes(host, name, name_end, action >> 1, unit >> 1, time, topic, start, start_at, end)


def with_start(body: bytes, task: TaskBytes, start: int) -> bytes:
    """Return a task with another start, at least 0."""
    rest = start << 1
    written = bytearray((_UNION_SECOND,))
    while rest >= _LONG:
        written.append(rest & 0x7F | _LONG)
        rest >>= 7
    written.append(rest)
    return body[: task.start_at] + written + body[task.start_end :]


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
        begin, at = _text(body, at)
        keys.add(body[begin:at].decode())
        begin, at = _text(body, at)
        body[begin:at].decode()
    if not count:
        return at
    if body[at] or len(keys) != count >> 1:
        raise ValueError
    return at + 1


def _text(body: bytes, at: int) -> tuple[int, int]:
    """Return where a text begins and ends. Raises ValueError as `_natural` does."""
    size = body[at]
    if size & _ODD_OR_LONG:
        size, begin = _natural(body, at)
        return begin, begin + size
    return at + 1, at + 1 + (size >> 1)
