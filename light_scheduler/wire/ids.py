"""Ids that nobody chose: UUIDs of version 7, so that their order is the order of time.

    48 bits UTC epoch ms | 4 bits version (7) | 12 bits | 2 bits variant (binary 10) | 62 bits

The 74 bits that the layout leaves free are the caller's: random ones, or the place of a record, which makes the id the
same however often the record is read.
"""

from __future__ import annotations

from uuid import UUID

FREE_BITS = 74
_OFFSET_BITS = 54


def time_ordered_id(at: int, free: int) -> str:
    """Return the UUIDv7 of an instant (UTC epoch ms) and 74 bits."""
    free &= (1 << FREE_BITS) - 1
    at = max(at, 0) & ((1 << 48) - 1)
    return str(UUID(int=at << 80 | 7 << 76 | (free >> 62) << 64 | 2 << 62 | free & ((1 << 62) - 1)))


def record_id(at: int, partition: int, offset: int) -> str:
    """Return the id of a record from its timestamp (UTC epoch ms), partition and offset: the same on every reading."""
    return time_ordered_id(at, partition << _OFFSET_BITS | offset)
