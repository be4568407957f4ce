"""Reads and changes tasks of light-4j in the published schemas byte by byte: decoding and encoding takes 4x as long.

    host  name    text
    action        index in the enum, as a number
    frequency     0: null; or 2, index of the unit and time, as numbers
    topic         text
    start         a number; in the nullable schema, 0: null; or 2, and a number
    data          0: null; or 2, and a map of texts

Numbers, texts and maps are as in `avro_bytes`. Unusual data is left to the decoder, including long names, and starts
with so few bytes that both schemas could fit.
"""

from __future__ import annotations

from typing import NamedTuple

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant, natural

UNITS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
"""Time units in ms, in the order of the enum."""


LONGEST_KIND = 80
"""Maximum size (bytes) of a kind, since kinds are cached. Usual ones are smaller."""

NULLABLE_START, START = 0, 1
"""Numbers of the published schemas, for `task_bytes`."""

TaskBytes = tuple[str, str, int, bytes, int | None, int, int]
"""Host and name of a task, the end of the name, its kind, its start, and where the start begins and ends. This is a
plain tuple for speed, since one is created for nearly every command.
"""


class Kind(NamedTuple):
    """The fields of a task between name and start. `action` and `unit` are indexes in their enums."""

    action: int
    unit: int
    time: int
    topic: str


def task_bytes(data: bytes, at: int = 0, schema: int | None = None) -> TaskBytes | None:
    """Read a task with a frequency that begins at `at`. None if a decoder must read it, or report what is wrong.

    `schema` is the number of its published schema, if known. The kind is not checked, and may be invalid.
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
    """Read a task's kind; None if a decoder must read the task."""
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
    """Return data with another start, at least 0. `task` was read from data."""
    *_, start_at, start_end = task
    rest = start << 1
    written = bytearray(() if data[start_at] >= LONG else (UNION_SECOND,))
    while rest >= LONG:
        written.append(rest & 0x7F | LONG)
        rest >>= 7
    written.append(rest)
    return data[:start_at] + written + data[start_end:]


def end_of_data(data: bytes, at: int) -> int:
    """Return the end of a map or null. Raises ValueError if a decoder must read or refuse it."""
    if not data[at]:
        return at + 1
    count = data[at + 1]
    if data[at] != UNION_SECOND or count & ODD_OR_LONG:
        raise ValueError
    at += 2
    keys: list[bytes] = []
    for _ in range(count):  # key and value of each entry
        # This is `text` inlined, since a call takes longer.
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
