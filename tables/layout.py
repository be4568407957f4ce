"""Keys of the table. Numbers are big-endian, so the order of bytes is the order of time.

    time index   't' | tenant 0x00 | minute u32 | ms in minute u16 | priority u8 | arrival u64 | id
                                              -> schedule record, or 0x00 | progress record
    primary      'p' | identity               -> cell u64 (see `counts`) | its time-index key, with 0xff after it if it
                                                 is split
    definition   'd' | identity               -> schedule record, if it is split
    checkpoint   'm'                          -> see `table.Checkpoint`
    others       'l' | changelog key          -> record that is neither a schedule's nor the position
    counts       'c' and 'g'                  -> see `counts` and `count_rows`

`identity` is `tenant | 0x00 | id` (see `wire.state`). An arrival is stored with 2^63 added: one before all commands of
the topic is negative. The minute is the storage bucket: it never shows outside.
A tenant's due scan is one sequential read of its part of the time index; an update or a cancel is one get of the
primary key. The time is the one at which a schedule wakes, and lies past the year 9999 for one that does not.

The tenant of a partition's probe is empty, so it is first in every order.

A look for bulk commands costs little where there are none: it ends before everything else of its kind.

A large schedule that moves on is split: its definition stays where it is, and only its progress is written anew.
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
"""The probe (see `model.probe`) comes before it, and everything that users have pending comes after."""
INDEX_END = b"u"
PRIMARY = b"p"
DEFINITION = b"d"

SPLIT_END = 0xFF
SPLIT = bytes([SPLIT_END])
"""Follows the time-index key of a split schedule; no identity ends in it, being UTF-8."""

PROGRESS_ONLY = b"\x00"
"""Begins a time-index value that holds progress only; no format version is 0."""

PROGRESS_ONLY_END = b"\x01"
"""Above all values that hold progress only, and below all others."""

MINUTE_MS = 60_000

Order = tuple[int, int, int, str, str]
"""(when it wakes, priority, arrival, tenant, id)."""

_TIME = struct.Struct(">IHBQ")
TIME_BYTES = _TIME.size
"""Of a time-index key between its tenant and its id."""

_DUE = struct.Struct(">IH")

MINUTE_BYTES = 4
CELL_BYTES = 8
"""Where a primary row begins with the cell in which its schedule is counted."""

GROUP_BYTES = 4
"""Where a cell begins with its group."""

_ARRIVAL_ZERO = 1 << 63


def index_key(entry: Entry, identity: bytes) -> bytes:
    """Return the time-index key of a pending schedule of this identity."""
    progress = entry.progress
    minute, ms = divmod(progress.wakes_at, MINUTE_MS)
    tenant, end, id = identity.partition(b"\0")
    arrival = progress.arrival + _ARRIVAL_ZERO
    return b"".join((INDEX_START, tenant, end, _TIME.pack(minute, ms, entry.schedule.priority, arrival), id))


def index_keys(tenant: str, priority: int) -> Callable[[int, int, bytes], bytes]:
    """Return what makes the time-index keys of a tenant's schedules of a priority, by time (ms), arrival and id."""
    prefix, pack = tenant_from(tenant), _TIME.pack

    def key(wakes_at: int, arrival: int, id: bytes) -> bytes:
        return prefix + pack(wakes_at // MINUTE_MS, wakes_at % MINUTE_MS, priority, arrival + _ARRIVAL_ZERO) + id

    return key


def moved_keys(tenant: str) -> Callable[[bytes, int], bytes]:
    """Return what makes of a time-index key of a tenant that of the same schedule at another time (ms)."""
    prefix, pack = tenant_from(tenant), _DUE.pack
    rest = len(prefix) + _DUE.size

    def key(index_key: bytes, wakes_at: int) -> bytes:
        return prefix + pack(wakes_at // MINUTE_MS, wakes_at % MINUTE_MS) + index_key[rest:]

    return key


def minute_in(index_key: bytes) -> bytes:
    """Return the minute (u32) that a time-index key holds."""
    start = index_key.index(0) + 1
    return index_key[start : start + MINUTE_BYTES]


def minute_of(tenant: str) -> slice:
    """Return where time-index keys of a tenant have the minute (u32)."""
    start = len(tenant_from(tenant))
    return slice(start, start + MINUTE_BYTES)


def indexed_at(primary: bytes) -> bytes:
    """Return the time-index key that a primary row points to."""
    return primary[CELL_BYTES:].removesuffix(SPLIT)


def primary_key(tenant: str, id: str) -> bytes:
    """Return the primary key of a schedule."""
    return PRIMARY + identity(tenant, id)


def tenant_from(tenant: str) -> bytes:
    """Return the lowest time-index key that a tenant could have."""
    return b"t%b\0" % tenant.encode()


def tenant_end(tenant: str) -> bytes:
    """Return bytes above every time-index key of a tenant and of none of the tenants after it."""
    return b"t%b\1" % tenant.encode()


def index_from(tenant: str, due: int) -> bytes:
    """Return the lowest time-index key of anything of a tenant that is due at or after an instant (ms)."""
    return tenant_from(tenant) + _DUE.pack(*divmod(due, MINUTE_MS))


def tenant_in(index_key: bytes) -> str:
    """Return the tenant that a time-index key begins with."""
    return index_key[1 : index_key.index(0)].decode()


def identity_in(index_key: bytes) -> bytes:
    """Return the identity that a time-index key holds."""
    tenant_end = index_key.index(0) + 1
    return index_key[1:tenant_end] + index_key[tenant_end + TIME_BYTES :]


def due_of(index_key: bytes) -> int:
    """Return the time (ms) that a time-index key holds."""
    minute, ms = _DUE.unpack_from(index_key, index_key.index(0) + 1)
    return int(minute) * MINUTE_MS + int(ms)


def order_of(entry: Entry) -> Order:
    """Return the place of a schedule in the order of delivery, over all tenants."""
    schedule, progress = entry.schedule, entry.progress
    return progress.wakes_at, schedule.priority, progress.arrival, schedule.tenant, schedule.id
