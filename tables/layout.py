"""Keys of the table. Numbers are big-endian, so keys sort by time.

    time index   't' | tenant 0x00 | minute u32 | ms in minute u16 | priority u8 | arrival u64 | id
                                              -> schedule record, or 0x00 | progress record
    primary      'p' | identity               -> cell u64 (see `counts`) | time-index key | 0xff if it is split
    definition   'd' | identity               -> schedule record, if it is split
    checkpoint   'm'                          -> see `table.Checkpoint`
    others       'l' | changelog key          -> any other record, but not the position
    counts       'c' and 'g'                  -> see `counts` and `count_rows`

`identity` is `tenant | 0x00 | id` (see `wire.state`). Arrivals are stored with 2^63 added, since an arrival before all
commands of the topic is negative. The minute is the storage bucket, which is never visible outside. A tenant's due scan
is one sequential read of its part of the time index; an update or a cancel is one get of the primary key. The time in
a key is when the schedule wakes; for a schedule that does not wake, it is past the year 9999.

The tenant of a partition's probe is empty, so it sorts first everywhere.

A scan for bulk commands is cheap if there are none: they sort before all other records under 'l'.

A large schedule that moves to its next firing is split: its definition stays in place, and only its progress is
rewritten.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from light_scheduler.model import Entry
from light_scheduler.wire.state import identity

CHECKPOINT_KEY = b"m"
OTHERS = b"l"
INDEX_START = b"t"
USERS_INDEX_START = b"t\1"
"""Sorts after the probe (see `model.probe`) and before all schedules of users."""
INDEX_END = b"u"
PRIMARY = b"p"
DEFINITION = b"d"

SPLIT_END = 0xFF
SPLIT = bytes([SPLIT_END])
"""Follows the time-index key of a split schedule. No key ends with this byte, since ids are UTF-8."""

PROGRESS_ONLY = b"\x00"
"""First byte of a time-index value with progress only. No format version is 0."""

PROGRESS_ONLY_END = b"\x01"
"""Sorts after all values with progress only, and before all others."""

MINUTE_MS = 60_000

Order = tuple[int, int, int, str, str]
"""(wake time in ms, priority, arrival, tenant, id)."""

_TIME = struct.Struct(">IHBQ")
TIME_BYTES = _TIME.size
"""Bytes of a time-index key between tenant and id."""

_DUE = struct.Struct(">IH")

MINUTE_BYTES = 4
CELL_BYTES = 8
"""Size of the cell at the start of a primary row."""

GROUP_BYTES = 4
"""Size of the group number at the start of a cell."""

_ARRIVAL_ZERO = 1 << 63


def index_key(entry: Entry, identity: bytes) -> bytes:
    """Return the time-index key of a pending schedule with this identity."""
    progress = entry.progress
    minute, ms = divmod(progress.wakes_at, MINUTE_MS)
    tenant, end, id = identity.partition(b"\0")
    arrival = progress.arrival + _ARRIVAL_ZERO
    return b"".join((INDEX_START, tenant, end, _TIME.pack(minute, ms, entry.schedule.priority, arrival), id))


def index_keys(tenant: str, priority: int) -> Callable[[int, int, bytes], bytes]:
    """Return a function `(time in ms, arrival, id) -> time-index key` for schedules of a tenant and priority."""
    prefix, pack = tenant_from(tenant), _TIME.pack

    def key(wakes_at: int, arrival: int, id: bytes) -> bytes:
        return prefix + pack(wakes_at // MINUTE_MS, wakes_at % MINUTE_MS, priority, arrival + _ARRIVAL_ZERO) + id

    return key


def moved_keys(tenant: str) -> Callable[[bytes, int], bytes]:
    """Return a function `(time-index key, time in ms) -> time-index key` that moves a tenant's keys to another time."""
    prefix, pack = tenant_from(tenant), _DUE.pack
    rest = len(prefix) + _DUE.size

    def key(index_key: bytes, wakes_at: int) -> bytes:
        return prefix + pack(wakes_at // MINUTE_MS, wakes_at % MINUTE_MS) + index_key[rest:]

    return key


def minute_in(index_key: bytes) -> bytes:
    """Return the minute (u32) in a time-index key."""
    start = index_key.index(0) + 1
    return index_key[start : start + MINUTE_BYTES]


def minute_of(tenant: str) -> slice:
    """Return the slice of a tenant's time-index keys that has the minute (u32)."""
    start = len(tenant_from(tenant))
    return slice(start, start + MINUTE_BYTES)


def indexed_at(primary: bytes) -> bytes:
    """Return the time-index key in a primary row."""
    return primary[CELL_BYTES:].removesuffix(SPLIT)


def primary_key(tenant: str, id: str) -> bytes:
    """Return the primary key of a schedule."""
    return PRIMARY + identity(tenant, id)


def tenant_from(tenant: str) -> bytes:
    """Return the prefix of a tenant's time-index keys."""
    return b"t%b\0" % tenant.encode()


def tenant_end(tenant: str) -> bytes:
    """Return a bound after all time-index keys of a tenant, and before those of later tenants."""
    return b"t%b\1" % tenant.encode()


def index_from(tenant: str, due: int) -> bytes:
    """Return the lowest possible time-index key of a tenant's schedules that are due at an instant (ms) or later."""
    return tenant_from(tenant) + _DUE.pack(*divmod(due, MINUTE_MS))


def tenant_in(index_key: bytes) -> str:
    """Return the tenant in a time-index key."""
    return index_key[1 : index_key.index(0)].decode()


def identity_in(index_key: bytes) -> bytes:
    """Return the identity in a time-index key."""
    tenant_end = index_key.index(0) + 1
    return index_key[1:tenant_end] + index_key[tenant_end + TIME_BYTES :]


def due_of(index_key: bytes) -> int:
    """Return the time (ms) in a time-index key."""
    minute, ms = _DUE.unpack_from(index_key, index_key.index(0) + 1)
    return int(minute) * MINUTE_MS + int(ms)


def order_of(entry: Entry) -> Order:
    """Return the sort key of a schedule in delivery order, across tenants."""
    schedule, progress = entry.schedule, entry.progress
    return progress.wakes_at, schedule.priority, progress.arrival, schedule.tenant, schedule.id
