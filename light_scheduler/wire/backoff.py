"""Parses backoff series: `1s,2s,4s,16s`, or `initial=5s factor=2 max=1h attempts=50 jitter=0.1`.

In JSON, they can also be a list of intervals, or an object with the parts of a rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from light_scheduler.model import Backoff

from .durations import parse_span, shown
from .json_values import is_whole, number_text

MOST_ATTEMPTS = 1_000_000
MOST_INTERVALS = 1_000

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
PARTS = {"initial": "integer", "factor": "number", "max": "integer", "attempts": "integer", "jitter": "number"}
"""The parts of a rule, each with the JSON type that is allowed besides string."""

INTERVALS = "intervals"
"""The member of an object that lists the intervals instead of a rule."""


def parse_backoff(text: str) -> Backoff:
    """Parse a backoff series. Raises ValueError, which names the invalid part."""
    return _exponential(_parts(text)) if "=" in text else _explicit(text)


def backoff_of_list(intervals: list[Any]) -> Backoff:
    """Return a backoff series from a list of intervals, each a text or ms. Raises ValueError."""
    _check_length(intervals)
    return _explicit(",".join(_interval_text(interval) for interval in intervals))


def backoff_of_parts(parts: Mapping[str, Any]) -> Backoff:
    """Return a backoff series from an object; null counts as absent. Raises ValueError, naming the invalid part."""
    for name in parts:
        if name not in PARTS and name != INTERVALS:
            raise _not_a_part(name, (*PARTS, INTERVALS))
    given = {name: part for name, part in parts.items() if part is not None}
    intervals = given.pop(INTERVALS, None)
    if intervals is None:
        return _exponential({name: _part_text(name, part) for name, part in given.items()})
    if given:
        raise ValueError(f"{next(iter(given))} is given together with {INTERVALS}: give the intervals or a rule")
    if not isinstance(intervals, list):
        raise ValueError(f"{INTERVALS}: must be array")
    return backoff_of_list(intervals)


def _interval_text(interval: Any) -> str:
    if isinstance(interval, str):
        return interval
    if not is_whole(interval):
        raise ValueError("an interval must be integer or string")
    return str(int(interval))


def _part_text(name: str, part: Any) -> str:
    if isinstance(part, str):
        return part.strip()
    if type(part) not in (int, float):
        raise ValueError(f"{name}: must be {PARTS[name]} or string")
    return number_text(part)


def _not_a_part(part: str, known: tuple[str, ...]) -> ValueError:
    return ValueError(f"{shown(part)} is not a part of a backoff rule; use {', '.join(known)}")


def _explicit(text: str) -> Backoff:
    parts = text.split(",")
    _check_length(parts)
    return Backoff(tuple(parse_span(part.strip()) for part in parts))


def _check_length(intervals: list[Any]) -> None:
    if len(intervals) > MOST_INTERVALS:
        raise ValueError(f"has {len(intervals)} intervals; at most {MOST_INTERVALS} are allowed")


def _parts(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals or name not in PARTS:
            raise _not_a_part(part, tuple(PARTS))
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = value
    return given


def _exponential(given: dict[str, str]) -> Backoff:
    if "initial" not in given:
        raise ValueError("initial is missing: give the first interval, such as initial=5s")
    return Backoff(
        (),
        _part(given, "initial"),
        _number(given, "factor", 1, 1_000, "2"),
        _part(given, "max") if "max" in given else None,
        int(_number(given, "attempts", 1, MOST_ATTEMPTS, "1", whole=True)) if "attempts" in given else None,
        _number(given, "jitter", 0, 1, "0"),
    )


def _part(given: dict[str, str], name: str) -> int:
    try:
        length = parse_span(given[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if length == 0:
        raise ValueError(f"{name} must be at least 1 ms")
    return length


def _number(given: dict[str, str], name: str, lowest: int, highest: int, default: str, *, whole: bool = False) -> float:
    text = given.get(name, default)
    if not _NUMBER.fullmatch(text) or (whole and "." in text) or not lowest <= float(text) <= highest:
        raise ValueError(f"{name}: {shown(text)} is not a {'whole ' * whole}number from {lowest} to {highest}")
    return float(text)
