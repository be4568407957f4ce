"""Durations in fields of commands, and the format of given texts in error messages."""

from __future__ import annotations

from light_scheduler.durations import parse_duration

LONGEST_DURATION = 10_000 * 31_557_600_000
"""10,000 years, in ms."""

MAX_SHOWN = 100


def parse_span(text: str) -> int:
    """Parse a duration. Return ms. Raises ValueError if it is invalid or longer than 10,000 years."""
    ms = parse_duration(text)
    if ms > LONGEST_DURATION:
        raise ValueError(f"{shown(text)} is longer than 10000 years")
    return ms


def shown(text: str) -> str:
    """Return a text for an error message: quoted, and shortened if it is long."""
    return repr(text) if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]!r}..."
