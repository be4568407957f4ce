"""Tasks of light-4j in their published schemas, changed byte by byte: a decoder and encoder take four times as long.

    host  name    text
    action        index in the enum, as a number
    frequency     0: null; or 2, index of the unit and time, as numbers
    topic         text
    start         a number, or, where it may be null, 0: null; or 2, and a number
    data          0: null; or 2, and a map of texts

Numbers, texts and maps are those of `avro_bytes`. What is unusual is left to the decoder, a long name too, and a start
of so few bytes that it could be either.
"""

from __future__ import annotations

from typing import NamedTuple

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant, natural

UNITS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
"""Time units in the order of their enum, in ms."""


LONGEST_KIND = 80
"""Bytes of a kind: all that is usual takes fewer, and kinds are remembered."""

NULLABLE_START, START = 0, 1
"""The published schemas, as `task_bytes` knows them."""

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


def task_bytes(data: bytes, at: int = 0, schema: int | None = None) -> TaskBytes | None:
    """Read a task that has a frequency, which begins at a place; None if a decoder has to read it, or to say what is
    wrong with it.

    `schema` is the published one that it is of, if that is known. The kind has not been looked at: it may be none.
    """
    try:
        size = data[at]
        host_at = at + 1
        host_end = host_at + (size >> 1)
        name_size = data[host_end]
        name_end = host_end + 1 + (name_size >> 1)
        if (size | name_size) & ODD_OR_LONG or not size:
            return None
        at = name_end + 3
        while data[at] >= LONG:  # the time
            at += 1
        start_at = at + 2 + (data[at + 1] >> 1)
        if start_at - name_end > LONGEST_KIND:
            return None
        end = start_at + 1
        start = None
        first = data[start_at]
        if first >= LONG and schema != NULLABLE_START:
            start, end = instant(data, start_at)
        elif schema == START:
            return None
        elif first == UNION_SECOND:
            start, end = instant(data, end)
        elif first:
            return None
        if end_of_data(data, end) != len(data):
            return None
        host, name = data[host_at:host_end].decode(), data[host_end + 1 : name_end].decode()
    except UNREADABLE:
        return None
    return host, name, name_end, data[name_end:start_at], start, start_at, end


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


def with_start(data: bytes, task: TaskBytes, start: int) -> bytes:
    """Return data with another start in the task that was read from it, at least 0."""
    *_, start_at, start_end = task
    rest = start << 1
    written = bytearray(() if data[start_at] >= LONG else (UNION_SECOND,))
    while rest >= LONG:
        written.append(rest & 0x7F | LONG)
        rest >>= 7
    written.append(rest)
    return data[:start_at] + written + data[start_end:]


def end_of_data(data: bytes, at: int) -> int:
    """Return where a map, or null, ends. Raises ValueError for one that a decoder has to read, or to refuse."""
    if not data[at]:
        return at + 1
    count = data[at + 1]
    if data[at] != UNION_SECOND or count & ODD_OR_LONG:
        raise ValueError
    at += 2
    keys: list[bytes] = []
    for _ in range(count):  # of each entry the key, and the value
        # As `text` reads it: a call takes longer than all of this.
        size, begin = data[at], at + 1
        if size & ODD_OR_LONG:
            second = data[begin]
            if size & 1 or not 0 < second < LONG:
                size, begin = natural(data, at)
                at = begin + size
            else:
                begin += 1
                at = begin + ((size & 0x7F | second << 7) >> 1)
        else:
            at = begin + (size >> 1)
        text = data[begin:at]
        if not text.isascii():
            text.decode()
        if count > UNION_SECOND:
            keys.append(text)
    if not count:
        return at
    if data[at] or (count > UNION_SECOND and len({*keys[::2]}) != len(keys) >> 1):
        raise ValueError
    return at + 1
