"""Percentiles of values with counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LATENESS_LEVELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def percentiles(counted: Iterable[tuple[int, int]], levels: Mapping[str, float] = LATENESS_LEVELS) -> dict[str, int]:
    """Return values by the names of levels (shares, from 0 to 1), given (value, count) pairs; empty without any
    pairs."""
    ordered = sorted(counted)
    total = sum(number for _, number in ordered)
    found: dict[str, int] = {}
    for name, level in levels.items():
        seen = 0
        for value, number in ordered:
            seen += number
            if seen >= level * total:
                found[name] = value
                break
    return found
