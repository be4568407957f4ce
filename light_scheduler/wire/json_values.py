"""Values in JSON that were skipped so far: their form is right, but they may still be no UTF-8, or have numbers out of
range.

A large value has a hundred thousand objects, which nobody needs if only its bytes are passed on. So it is checked
without them, in a few passes over its bytes.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf
from typing import Any

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON raises."""

_SMALL = 256
"""Below this number of bytes, reading a value is faster than looking through it."""

_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
_OUT_OF_RANGE = (b"e000", b"e+000", b"0" * 200)
"""Numbers with fewer than three digits in the exponent, and fewer than 200 before the point, are below 1e299."""

_LARGE = 2_048
"""Below this number of bytes, no numbers take long."""

_NEAR_THE_LIMIT = re.compile(rb"[eE](?<=[0-9].)[-+]?0*[23][0-9]{2}(?![0-9])")
_FEW = 1_000
"""msgspec takes up to 30 us for a number near the largest or the smallest. If there is one in as many bytes, `float` is
called for all numbers with a fraction."""


def read(value: bytes | msgspec.Raw) -> Any:
    """Return a value. Raises what is in UNREADABLE."""
    whole = bytes(value)
    return (_FOR_NUMBERS_NEAR_THE_LIMIT if _has_many_near_the_limit(whole) else _DECODER).decode(whole)


def check(value: bytes) -> None:
    """Raise what `read` would, for a value whose form is known to be right."""
    if len(value) < _SMALL or _may_be_out_of_range(value) or not _is_utf_8(value):
        read(value)


def is_null(raw: msgspec.Raw) -> bool:
    """Return whether a value whose form is known to be right is null. Raises what `read` would."""
    value = bytes(raw)
    check(value)
    return value == b"null"


_FIRST_INEXACT = 2**53
"""From here on, a number with a fraction or an exponent may be read as its neighbour."""


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number. As in JSON Schema, 3.0 is one; it is if it is exact."""
    if type(value) is float:
        return value.is_integer() and abs(value) < _FIRST_INEXACT
    return type(value) is int


def number_text(number: float) -> str:
    """Return a number as a header has it: without an exponent, and without a fraction if it is whole."""
    return str(int(number)) if is_whole(number) else format(Decimal(repr(number)), "f")


def _is_utf_8(value: bytes) -> bool:
    try:
        return value.isascii() or bool(str(value, "utf-8"))
    except UnicodeDecodeError:
        return False


def _may_be_out_of_range(value: bytes) -> bool:
    """Return whether a number may be out of range. What looks like one may also be in a text."""
    shape = value.translate(_SHAPES)
    return any(each in shape for each in _OUT_OF_RANGE)


def _has_many_near_the_limit(value: bytes) -> bool:
    if len(value) < _LARGE:
        return False
    shape = value.translate(_SHAPES, b"+-")
    few = len(value) // _FEW
    return shape.count(b"0e000") > few and len(_NEAR_THE_LIMIT.findall(value)) > few


def _float(text: str) -> float:
    """Return a number with a fraction or an exponent."""
    number = float(text)
    if isinf(number):
        raise ValueError("Number out of range")
    return number


_DECODER = msgspec.json.Decoder()
_FOR_NUMBERS_NEAR_THE_LIMIT = msgspec.json.Decoder(float_hook=_float)
