"""The version at the beginning of every state record (see `state`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from light_scheduler.errors import FormatError, FormatTooNew

FORMAT_VERSION = 5

VERSION = bytes([FORMAT_VERSION])
GROWING = b"\x80"
"""Version of records that only exist while bulk commands run in a growing topic. Older workers refuse only these
records.
"""
LACKING = b"\x81"
"""Version of totals with missing partitions, which exist until they are answered."""
WAITING = b"\x82"
"""Version of records that wait for a partition that cannot be written to, until they are sent (see `waiting_state`)."""
WAITING_FOR_LOG = b"\x83"
"""The same for records that name the log that they are for, and for the part of them that is a tenant's."""
NUMBERED = b"\x84"
"""Version of positions in a log that is not the first one of its partition (see `model.arrival`)."""
READABLE = frozenset(bytes([version]) for version in range(1, FORMAT_VERSION + 1))

T = TypeVar("T")


def decoded(decode: Callable[[memoryview], T], value: bytes, what: str) -> T:
    """Decode the bytes after the version. Raises FormatTooNew or FormatError, which says that `what` cannot be read."""
    if value[:1] not in READABLE:
        raise wrong_version(value)
    return _body(decode, value, what)


def decoded_as(version: bytes, decode: Callable[[memoryview], T], value: bytes, what: str) -> T:
    """Do as `decoded`, of a kind of record that has a version of its own."""
    if value[:1] != version:
        raise wrong_version(value)
    return _body(decode, value, what)


def wrong_version(value: bytes) -> FormatError:
    """Return the error for a record with another version."""
    if value and value[0] > FORMAT_VERSION:
        return FormatTooNew(
            f"state was written in format {value[0]}, and this version reads formats up to {FORMAT_VERSION}: run the "
            "newer version that wrote it. Nothing was changed"
        )
    return FormatError("a state record does not start with a known format version")


def _body(decode: Callable[[memoryview], T], value: bytes, what: str) -> T:
    try:
        return decode(memoryview(value)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{what} cannot be read: {error}") from error
