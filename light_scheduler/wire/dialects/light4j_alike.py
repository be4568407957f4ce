"""A fast path for tasks of light-4j that are similar to an earlier one.

Many tasks of a host have the same action, frequency and topic, and data with one entry of the same key. Then only the
name, the start and the text of that entry are read.

    key      frame  host                    | size of the name, name
    value    frame  host                    | size of the name, name | action, frequency, topic, [2] | start
             data: 2, one entry's key       | size of the text, text | 0

The layout is as in `light4j_bytes`. The parts to the left of a bar are compared as a whole. A result of None only means
that the task must be read completely.
"""

from __future__ import annotations

from light_scheduler.wire.schemas import FRAME

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant
from .light4j_bytes import TaskBytes, end_of_data

Meaning = tuple[str, str, int, int]
"""Tenant, topic, unit and interval (ms) of similar tasks."""

_Shape = tuple[int, bytes, bytes, bytes, int, Meaning]
"""Length of the key before the name, beginning of the value, bytes between name and start, beginning of the data before
the text, and its length, which is 0 if data has another form. This is a plain tuple for speed, since it is unpacked for
nearly every command.
"""

_MOST = 4_096
"""Maximum number of remembered shapes."""

_TOLD_APART = 4
"""Number of bytes after the name for the look-up of shapes: the action, and the beginning of the frequency."""

_FRAME_SIZE = FRAME.size
_ONE_ENTRY = bytes((UNION_SECOND, 2))
_LONGEST_NAME = 64
"""Maximum size (bytes) of a name, including its length in one byte."""


class AlikeTasks:
    """The shapes of earlier tasks, by the beginning of their keys and the bytes after the name in their values."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, _Shape] = {}

    def forget(self) -> None:
        """Forget all shapes, so that every task is read completely."""
        self._shapes.clear()

    def keep(self, key: bytes, key_at: int, value: bytes, value_at: int, task: TaskBytes, meaning: Meaning) -> None:
        """Remember the shape of a task with a start. It begins after the frames, at `key_at` and `value_at`."""
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
        """Return name, start and meaning of a task with a remembered shape."""
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
    """Return the beginning of the data before the text of the only entry; empty if data has another form."""
    if value[at : at + 2] != _ONE_ENTRY or value[at + 2] & ODD_OR_LONG:
        return b""
    return value[at : at + 3 + (value[at + 2] >> 1)]


def _is_last_text(value: bytes, at: int) -> bool:
    """Return whether only a text and the end of a map are left. Raises UNREADABLE if it is not a text."""
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
