"""Keys of the table. Numbers are big-endian, so the order of bytes is the order of time.

    time index   't' | minute u32 | ms in minute u16 | priority u8 | arrival u64 | identity  -> schedule record
                                                                                             or 0x00 | progress record
    primary      'p' | identity                            -> its time-index key, with 0xff after it if it is split
    definition   'd' | identity                            -> schedule record, if it is split
    checkpoint   'm'                                       -> see `table.Checkpoint`

`identity` is `tenant | 0x00 | id` (see `wire.state`). The minute is the storage bucket: it never shows outside.
A due scan is one sequential read of the time index; an update or a cancel is one get of the primary key. The time is
the one at which a schedule wakes, and lies past the year 9999 for one that does not.

A large schedule that moves on is split: its definition stays where it is, and only its progress is written anew.
"""

from __future__ import annotations

import struct

from light_scheduler.model import Entry
from light_scheduler.wire.state import identity

CHECKPOINT_KEY = b"m"
INDEX_START = b"t"
INDEX_END = b"u"
PRIMARY = b"p"
DEFINITION = b"d"

SPLIT = b"\xff"
"""Follows the time-index key of a split schedule; no identity ends in it, being UTF-8."""

PROGRESS_ONLY = b"\x00"
"""Begins a time-index value that holds progress only; no format version is 0."""

MINUTE_MS = 60_000

_INDEX = struct.Struct(">cIHBQ")
INDEX_BYTES = _INDEX.size
"""Of a time-index key before its identity."""

_DUE = struct.Struct(">cIH")


def index_key(entry: Entry, identity: bytes) -> bytes:
    """Return the time-index key of a pending schedule of this identity."""
    progress = entry.progress
    minute, ms = divmod(progress.wakes_at, MINUTE_MS)
    return _INDEX.pack(INDEX_START, minute, ms, entry.schedule.priority, progress.arrival) + identity


def primary_key(tenant: str, id: str) -> bytes:
    """Return the primary key of a schedule."""
    return PRIMARY + identity(tenant, id)


def index_from(due: int) -> bytes:
    """Return the lowest time-index key of anything due at or after an instant (ms)."""
    return _DUE.pack(INDEX_START, *divmod(due, MINUTE_MS))


def identity_in(index_key: bytes) -> bytes:
    """Return the identity that a time-index key ends in."""
    return index_key[INDEX_BYTES:]


def due_of(key: bytes) -> int:
    """Return the time (ms) that a time-index key holds."""
    _, minute, ms = _DUE.unpack_from(key)
    return int(minute) * MINUTE_MS + int(ms)
