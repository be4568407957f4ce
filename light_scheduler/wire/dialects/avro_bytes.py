"""Reads Avro's numbers and texts byte by byte, which is much faster than a decoder.

    number    zigzag: twice the number, in groups of 7 bits, the lowest first, with 0x80 set in all but the last
    text      its length as a number, then UTF-8; bytes are the same
    map       0: empty; or the number of entries, key and value of each, 0

Unusual data is left to the decoder: negative numbers, several blocks of entries, numbers with more bytes than needed.
"""

from __future__ import annotations

from struct import Struct
from struct import error as TooShort  # noqa: N812 - it is an exception

LONG = 0x80
ODD_OR_LONG = 0x81
UNION_SECOND = 2
"""The second branch of a union."""

_MOST_BITS = 56
_six = Struct("<6B").unpack_from
_SET_IN_FIVE = sum(LONG << 7 * place for place in range(5))
"""The sum of the continuation bits in a number of six bytes."""

UNREADABLE = (IndexError, ValueError, TooShort)
"""Errors of these readers: data ends too early, or a decoder must read it or report what is wrong."""


def instant(body: bytes, at: int) -> tuple[int, int]:
    """Like `natural`, but fastest for an instant (UTC epoch ms) from 1987 to 2039. Raises UNREADABLE."""
    first, second, third, fourth, fifth, sixth = _six(body, at)
    if first & second & third & fourth & fifth & LONG and not first & 1 and 0 < sixth < LONG:
        low = first + second * 0x80 + third * 0x4000 + fourth * 0x200000
        return (low + (fifth + sixth * 0x80) * 0x10000000 - _SET_IN_FIVE) >> 1, at + 6
    return natural(body, at)


def natural(body: bytes, at: int) -> tuple[int, int]:
    """Return a non-negative number and its end. Raises UNREADABLE."""
    byte = body[at]
    if not byte & ODD_OR_LONG:
        return byte >> 1, at + 1
    second = body[at + 1]
    if 0 < second < LONG and not byte & 1:  # the size of most texts
        return (byte & 0x7F | second << 7) >> 1, at + 2
    number, shift = byte & 0x7F, 7
    while byte >= LONG:
        at += 1
        byte = body[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _MOST_BITS:
            raise ValueError
    if number & 1 or not byte:
        raise ValueError
    return number >> 1, at + 1


def text(body: bytes, at: int) -> tuple[int, int]:
    """Return the start and the end of a text. Raises UNREADABLE."""
    size = body[at]
    if not size & ODD_OR_LONG:
        at += 1
        return at, at + (size >> 1)
    size, at = natural(body, at)
    return at, at + size
