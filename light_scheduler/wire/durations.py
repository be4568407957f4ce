"""Durations as fields of commands, and how an error message shows what was given."""

from __future__ import annotations

from light_scheduler.durations import parse_duration

LONGEST_DURATION = 10_000 * 31_557_600_000
"""10,000 years, in ms."""

MAX_SHOWN = 100


def parse_span(text: str) -> int:
    """Return a duration in ms. Raises ValueError for what is none, and for one that is longer than all of time."""
    ms = parse_duration(text)
    if ms > LONGEST_DURATION:
        raise ValueError(f"{shown(text)} is longer than 10000 years")
    return ms


def shown(text: str) -> str:
    """Return text as an error message shows it: quoted, and cut short if it is long."""
    return repr(text) if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]!r}..."
