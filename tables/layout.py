"""Keys of the table. Numbers are big-endian, so the order of bytes is the order of time.

    time index   't' | minute u32 | ms in minute u16 | priority u8 | arrival u64 | identity  -> schedule record
    primary      'p' | identity                                                              -> its time-index key
    checkpoint   'm'                                                                         -> see `table.Checkpoint`

`identity` is `tenant | 0x00 | id` (see `wire.state`). The minute is the storage bucket: it never shows outside.
A due scan is one sequential read of the time index; an update or a cancel is one get of the primary key.
"""

from __future__ import annotations

import struct

from light_scheduler.model import Entry
from light_scheduler.wire.state import identity

CHECKPOINT_KEY = b"m"
INDEX_START = b"t"
INDEX_END = b"u"
PRIMARY = b"p"

MINUTE_MS = 60_000

_INDEX = struct.Struct(">cIHBQ")
_DUE = struct.Struct(">cIH")


def index_key(entry: Entry, identity: bytes) -> bytes:
    """Return the time-index key of a pending schedule of this identity."""
    progress = entry.progress
    minute, ms = divmod(progress.due, MINUTE_MS)
    return _INDEX.pack(INDEX_START, minute, ms, entry.schedule.priority, progress.arrival) + identity


def primary_key(tenant: str, id: str) -> bytes:
    """Return the primary key of a schedule."""
    return PRIMARY + identity(tenant, id)


def index_from(due: int) -> bytes:
    """Return the lowest time-index key of anything due at or after an instant (ms)."""
    return _DUE.pack(INDEX_START, *divmod(due, MINUTE_MS))


def due_of(key: bytes) -> int:
    """Return the due time (ms) that a time-index key holds."""
    _, minute, ms = _DUE.unpack_from(key)
    return int(minute) * MINUTE_MS + int(ms)
