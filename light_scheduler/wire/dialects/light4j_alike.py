"""Tasks of light-4j that are like the one before them, read in fewer steps.

Nearly all of a sender's have the same host, action, frequency and topic, and data with one entry of the same key. Then
only name, start and that entry's text are read.

    key      frame  host                    | size of the name, name
    value    frame  host                    | size of the name, name | action, frequency, topic, [2] | start
             data: 2, one entry's key       | size of the text, text | 0

The layout is that of `light4j_bytes`. What is to the left of a bar is compared as a whole. None says no more than that
the task has to be read by itself.
"""

from __future__ import annotations

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant
from .light4j_bytes import TaskBytes, end_of_data

_ONE_ENTRY = bytes((UNION_SECOND, 2))
_LONGEST_NAME = 64
"""Bytes of a name with its size, as long as that takes one byte."""

Shape = tuple[bytes, int, bytes, bytes, bytes, int]
"""Start of the key and its length, start of the value, what is between name and start, start of the data up to the
text, and its length: 0 if data is not of that form. A plain tuple, for it is taken apart for nearly every command.
"""


def shape_of(key: bytes, key_at: int, value: bytes, value_at: int, task: TaskBytes) -> Shape:
    """Return what others may have in common with a task that has a start; `key_at` and `value_at` are where the record
    begins after its frame.
    """
    _, _, _, kind, _, start_at, start_end = task
    host_size = 1 + (value[value_at] >> 1)
    union = b"" if value[start_at] >= LONG else value[start_at : start_at + 1]
    data = _start_of_data(value, start_end)
    return key[: key_at + host_size], key_at + host_size, value[: value_at + host_size], kind + union, data, len(data)


def alike_task(key: bytes, value: bytes, shape: Shape) -> tuple[str, int] | None:
    """Return name and start of a task of a shape."""
    key_start, key_size, value_start, kind, data, data_size = shape
    name = key[key_size:]
    start = value_start + name + kind
    if not (key.startswith(key_start) and value.startswith(start)):
        return None
    at = len(start)
    try:
        if value[at] < LONG or not 1 < len(name) <= _LONGEST_NAME or name[0] != 2 * len(name) - 2:
            return None
        begin, at = instant(value, at)
        if not data_size:
            return (name[1:].decode(), begin) if end_of_data(value, at) == len(value) else None
        if value[at : at + data_size] != data or not _is_last_text(value, at + data_size):
            return None
        return name[1:].decode(), begin
    except UNREADABLE:
        return None


def _start_of_data(value: bytes, at: int) -> bytes:
    """Return how the data begin, up to the text of their one entry; nothing if they are not of that form."""
    if value[at : at + 2] != _ONE_ENTRY or value[at + 2] & ODD_OR_LONG:
        return b""
    return value[at : at + 3 + (value[at + 2] >> 1)]


def _is_last_text(value: bytes, at: int) -> bool:
    """Tell whether a text and the end of a map are all that is left. Raises UNREADABLE if it is no text."""
    size = value[at]
    at += 1
    if size >= LONG:
        second = value[at]
        if not 0 < second < LONG:
            return False
        size += (second << 7) - LONG
        at += 1
    if size != 2 * (len(value) - 1 - at) or value[-1]:
        return False
    text = value[at:-1]
    if not text.isascii():
        text.decode()
    return True
