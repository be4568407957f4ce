"""Generated ids: ordered by time, or derived from a name.

An id ordered by time is a UUID of version 7:

    48 bits UTC epoch ms | 4 bits version (7) | 12 bits | 2 bits variant (binary 10) | 62 bits

The caller chooses the 74 free bits: they are random, or the place of a record, so that the id is the same each time the
record is read. A derived id is a UUID of version 5 in the namespace below.
"""

from __future__ import annotations

from hashlib import sha1
from uuid import UUID

NAMESPACE = UUID("6879b462-cb1b-5fba-84ad-9f5ef688e0fe")
"""Namespace of derived ids: the UUIDv5 of `urn:light-scheduler:schedule-id` as a URL."""

FREE_BITS = 74
_OFFSET_BITS = 54


def time_ordered_id(at: int, free: int) -> str:
    """Return the UUIDv7 for an instant (UTC epoch ms) and 74 free bits."""
    free &= (1 << FREE_BITS) - 1
    at = max(at, 0) & ((1 << 48) - 1)
    return str(UUID(int=at << 80 | 7 << 76 | (free >> 62) << 64 | 2 << 62 | free & ((1 << 62) - 1)))


def record_id(at: int, partition: int, offset: int) -> str:
    """Return the id for a record's timestamp (UTC epoch ms), partition and offset. It is the same on each read."""
    return time_ordered_id(at, partition << _OFFSET_BITS | offset)


def derived_id(name: str | bytes) -> str:
    """Return the UUIDv5 of a name. It is always the same, so that repeated requests are for the same schedule.

    Text is encoded as UTF-8.
    """
    content = name.encode() if isinstance(name, str) else name
    digest = sha1(NAMESPACE.bytes + content, usedforsecurity=False).digest()
    return str(UUID(bytes=digest[:16], version=5))
