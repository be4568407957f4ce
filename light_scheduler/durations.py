"""Durations as text: `250ms` `90s` `15m` `2h` `7d`, or ISO 8601 (`PT15M`). In records and documents also integer ms."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIMPLE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_NUMBER = r"\d+(?:[.,]\d+(?=[WDHMS]\Z))?"  # as in ISO 8601, only the last part can have a fraction
_ISO = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?"
    rf"(?:T(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.ASCII,
)
_ISO_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_MAX_CHARACTERS = 64


def parse_duration(text: str) -> int:
    """Parse a duration written by a program, as in headers and documents. Return ms. A bare number is milliseconds.

    Raises ValueError, which lists valid forms. A duration is never negative.
    """
    if _is_bare(text):
        return int(text)
    return _with_unit(text, "milliseconds, ")


def parse_typed_duration(text: str) -> int:
    """Parse a duration typed by a person. Return ms. Bare numbers except 0 are refused, since the unit is unclear.

    Raises ValueError, which lists valid forms.
    """
    if not _is_bare(text):
        return _with_unit(text)
    if text.strip("0"):
        raise ValueError(f"{text!r} has no unit: write {text}ms, {text}s, {text}m, {text}h or {text}d")
    return 0


def _is_bare(text: str) -> bool:
    return len(text) <= _MAX_CHARACTERS and text.isascii() and text.isdigit()


def _with_unit(text: str, also: str = "") -> int:
    if len(text) <= _MAX_CHARACTERS:
        if match := _SIMPLE.fullmatch(text):
            return _whole_ms(Fraction(match[1]) * _UNITS[match[2]], text)
        if text[-1:] not in ("P", "T") and (match := _ISO.fullmatch(text)):
            parts = (Fraction((match[unit] or "0").replace(",", ".")) * size for unit, size in _ISO_UNITS.items())
            return _whole_ms(sum(parts, Fraction()), text)
    raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not a duration: use {also}250ms, 90s, 15m, 2h, 7d or PT15M")


def _whole_ms(ms: Fraction, text: str) -> int:
    # Fractions are exact. Floats would change 9007199254740993ms by one, and accept a tenth of a nanosecond.
    if ms.denominator != 1:
        raise ValueError(f"{text!r} is finer than a millisecond")
    return ms.numerator


def format_duration(ms: int) -> str:
    """Format a duration in the largest unit that divides it: 90000 is `90s`."""
    for unit in ("d", "h", "m", "s"):
        if ms and ms % _UNITS[unit] == 0:
            return f"{ms // _UNITS[unit]}{unit}"
    return f"{ms}ms"


def distance(ms: int) -> str:
    """Format a length of time with its two largest units: `2h 5m`, `3s 20ms`, `0ms`."""
    rest = ms
    parts: list[str] = []
    for unit, size in reversed(_UNITS.items()):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0ms"
