"""Backoff series as senders write them: `1s,2s,4s,16s`, or `initial=5s factor=2 max=1h attempts=50 jitter=0.1`."""

from __future__ import annotations

import re
from typing import Any

from light_scheduler.model import Backoff

from .durations import parse_span, shown

MOST_ATTEMPTS = 1_000_000
MOST_INTERVALS = 1_000

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_PARTS = ("initial", "factor", "max", "attempts", "jitter")


def parse_backoff(text: str) -> Backoff:
    """Return a backoff series. Raises ValueError, naming the part that is wrong."""
    return _exponential(text) if "=" in text else _explicit(text)


def intervals_text(intervals: list[Any]) -> str:
    """Return a backoff series that came as a list as `parse_backoff` takes it. Raises ValueError if it is too long."""
    _check_length(intervals)
    return ",".join(str(interval) for interval in intervals)


def _explicit(text: str) -> Backoff:
    parts = text.split(",")
    _check_length(parts)
    return Backoff(tuple(parse_span(part.strip()) for part in parts))


def _check_length(intervals: list[Any]) -> None:
    if len(intervals) > MOST_INTERVALS:
        raise ValueError(f"has {len(intervals)} intervals; at most {MOST_INTERVALS} are allowed")


def _exponential(text: str) -> Backoff:
    given: dict[str, str] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals or name not in _PARTS:
            raise ValueError(f"{shown(part)} is not a part of a backoff rule; use {', '.join(_PARTS)}")
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = value
    if "initial" not in given:
        raise ValueError("initial is missing: give the first interval, such as initial=5s")
    initial = _part(given, "initial")
    if initial == 0:
        raise ValueError("initial must be at least 1 ms")
    return Backoff(
        (),
        initial,
        _number(given, "factor", 1, 1_000, "2"),
        _part(given, "max") if "max" in given else None,
        int(_number(given, "attempts", 1, MOST_ATTEMPTS, "1", whole=True)) if "attempts" in given else None,
        _number(given, "jitter", 0, 1, "0"),
    )


def _part(given: dict[str, str], name: str) -> int:
    try:
        return parse_span(given[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _number(given: dict[str, str], name: str, lowest: int, highest: int, default: str, *, whole: bool = False) -> float:
    text = given.get(name, default)
    if not _NUMBER.fullmatch(text) or (whole and "." in text) or not lowest <= float(text) <= highest:
        raise ValueError(f"{name}: {shown(text)} is not a {'whole ' * whole}number from {lowest} to {highest}")
    return float(text)
