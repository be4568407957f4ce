"""Tasks of light-4j that are like one before them, read in fewer steps.

Many of a host's have the same action, frequency and topic, and data with one entry of the same key. Then only name,
start and that entry's text are read.

    key      frame  host                    | size of the name, name
    value    frame  host                    | size of the name, name | action, frequency, topic, [2] | start
             data: 2, one entry's key       | size of the text, text | 0

The layout is that of `light4j_bytes`. What is to the left of a bar is compared as a whole. None says no more than that
the task has to be read by itself.
"""

from __future__ import annotations

from light_scheduler.wire.schemas import FRAME

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant
from .light4j_bytes import TaskBytes, end_of_data

Meaning = tuple[str, str, int, int]
"""Tenant, topic, unit and interval (ms) of tasks that are alike."""

_Shape = tuple[int, bytes, bytes, bytes, int, Meaning]
"""Length of the key up to the name, start of the value, what is between name and start, start of the data up to the
text, and its length: 0 if data is not of that form. A plain tuple, for it is taken apart for nearly every command.
"""

_MOST = 4_096
"""Shapes that are remembered."""

_TOLD_APART = 4
"""Bytes after the name by which shapes of a host are looked up: its action, and the beginning of its frequency."""

_FRAME_SIZE = FRAME.size
_ONE_ENTRY = bytes((UNION_SECOND, 2))
_LONGEST_NAME = 64
"""Bytes of a name with its size, as long as that takes one byte."""


class AlikeTasks:
    """The shapes of tasks that were read, by how their keys begin and what follows the name in their values."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, _Shape] = {}

    def forget(self) -> None:
        """Have every task be read by itself."""
        self._shapes.clear()

    def keep(self, key: bytes, key_at: int, value: bytes, value_at: int, task: TaskBytes, meaning: Meaning) -> None:
        """Remember the shape of a task that has a start; `key_at` and `value_at` are where it begins after frames."""
        _, _, name_end, kind, _, start_at, start_end = task
        host_size = 1 + (value[value_at] >> 1)
        union = b"" if value[start_at] >= LONG else value[start_at : start_at + 1]
        data = _start_of_data(value, start_end)
        if len(self._shapes) >= _MOST:
            self._shapes.clear()
        key_size = key_at + host_size
        shape = key_size, value[: value_at + host_size], kind + union, data, len(data), meaning
        self._shapes[key[:key_size] + value[name_end : name_end + _TOLD_APART]] = shape

    def read(self, key: bytes, value: bytes) -> tuple[str, int, Meaning] | None:
        """Return name, start and meaning of a task of a shape that is remembered."""
        try:
            key_at = 0 if key[0] else _FRAME_SIZE
            kind_at = len(key) - key_at + (0 if value[0] else _FRAME_SIZE)
            host = key[: key_at + 1 + (key[key_at] >> 1)]
            shape = self._shapes.get(host + value[kind_at : kind_at + _TOLD_APART])
            if shape is None:
                return None
            key_size, value_start, kind, data, data_size, meaning = shape
            name = key[key_size:]
            start = value_start + name + kind
            at = len(start)
            if not value.startswith(start) or value[at] < LONG:
                return None
            if not 1 < len(name) <= _LONGEST_NAME or name[0] != 2 * len(name) - 2:
                return None
            begin, at = instant(value, at)
            if not data_size:
                is_whole = end_of_data(value, at) == len(value)
            else:
                is_whole = value[at : at + data_size] == data and _is_last_text(value, at + data_size)
            return (name[1:].decode(), begin, meaning) if is_whole else None
        except UNREADABLE:
            return None


def _start_of_data(value: bytes, at: int) -> bytes:
    """Return how the data begin, up to the text of their one entry; nothing if they are not of that form."""
    if value[at : at + 2] != _ONE_ENTRY or value[at + 2] & ODD_OR_LONG:
        return b""
    return value[at : at + 3 + (value[at + 2] >> 1)]


def _is_last_text(value: bytes, at: int) -> bool:
    """Return whether a text and the end of a map are all that is left. Raises UNREADABLE if it is no text."""
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
