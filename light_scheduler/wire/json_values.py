"""Checks JSON values that a decoder skipped. Their syntax is valid, but they may not be UTF-8, or have numbers out of
range.

Decoding a large value would create 100,000 objects that are not needed if only its bytes are passed on. So it is
checked without decoding, in a few passes over its bytes.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf
from typing import Any

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding JSON."""

_SMALL = 256
"""Below this number of bytes, decoding a value is faster than checking it."""

_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
_OUT_OF_RANGE = (b"e000", b"e+000", b"0" * 200)
"""Numbers with less than three digits in the exponent, and less than 200 before the point, are below 1e299."""

_LARGE = 2_048
"""Below this number of bytes, numbers cannot take long."""

_NEAR_THE_LIMIT = re.compile(rb"[eE](?<=[0-9].)[-+]?0*[23][0-9]{2}(?![0-9])")
_FEW = 1_000
"""msgspec takes up to 30 us for a number near the largest or the smallest. If there is more than one per `_FEW` bytes,
`float` is called for all numbers with a fraction.
"""


def read(value: bytes | msgspec.Raw) -> Any:
    """Decode a value. Raises the errors in UNREADABLE."""
    whole = bytes(value)
    return (_FOR_NUMBERS_NEAR_THE_LIMIT if _has_many_near_the_limit(whole) else _DECODER).decode(whole)


def check(value: bytes) -> None:
    """Check a value whose syntax is known to be valid. Raises the same errors as `read`."""
    if len(value) < _SMALL or _may_be_out_of_range(value) or not _is_utf_8(value):
        read(value)


def is_null(raw: msgspec.Raw) -> bool:
    """Return whether a value whose syntax is known to be valid is null. Raises the same errors as `read`."""
    value = bytes(raw)
    check(value)
    return value == b"null"


_FIRST_INEXACT = 2**53
"""From this number on, floats are not exact for integers."""


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number. As in JSON Schema, 3.0 is one, but only if it is exact."""
    if type(value) is float:
        return value.is_integer() and abs(value) < _FIRST_INEXACT
    return type(value) is int


def number_text(number: float) -> str:
    """Format a number for a header: without an exponent, and without a fraction if it is whole."""
    return str(int(number)) if is_whole(number) else format(Decimal(repr(number)), "f")


def _is_utf_8(value: bytes) -> bool:
    try:
        return value.isascii() or bool(str(value, "utf-8"))
    except UnicodeDecodeError:
        return False


def _may_be_out_of_range(value: bytes) -> bool:
    """Return whether a number may be out of range. A match may also be within a text."""
    shape = value.translate(_SHAPES)
    return any(each in shape for each in _OUT_OF_RANGE)


def _has_many_near_the_limit(value: bytes) -> bool:
    if len(value) < _LARGE:
        return False
    shape = value.translate(_SHAPES, b"+-")
    few = len(value) // _FEW
    return shape.count(b"0e000") > few and len(_NEAR_THE_LIMIT.findall(value)) > few


def _float(text: str) -> float:
    """Parse a number with a fraction or an exponent."""
    number = float(text)
    if isinf(number):
        raise ValueError("Number out of range")
    return number


_DECODER = msgspec.json.Decoder()
_FOR_NUMBERS_NEAR_THE_LIMIT = msgspec.json.Decoder(float_hook=_float)
