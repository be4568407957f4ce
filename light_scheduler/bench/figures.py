"""The figures of a run, over its rounds."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

FAULT_KINDS = (
    "kill",
    "freeze",
    "restart",
    "guest",
    "forget",
    "disk_full",
    "cut",
    "stall",
    "broker_kill",
    "broker_freeze",
)
"""Faults of workers and brokers in a chaos run."""

UNITS = {
    "accepted_per_s": "1/s",
    "replaced_per_s": "1/s",
    "firings_per_s": "1/s",
    "ceiling_per_s": "1/s",
    "ratio_to_ceiling": "1",
    "accepted_ratio_to_few": "1",
    "replaced_ratio_to_few": "1",
    "accepted_cpu_ratio_to_few": "1",
    "replaced_cpu_ratio_to_few": "1",
    "worker_cpu_us_per_event": "us",
    "lateness_p50_ms": "ms",
    "lateness_p99_ms": "ms",
    "lateness_max_ms": "ms",
    "recovered_per_s": "1/s",
    "restart_to_first_firing_s": "s",
    "restart_after_kill_to_first_firing_s": "s",
    "failover_s": "s",
    "idle_cpu_percent": "%",
    "rss_bytes": "B",
    "disk_bytes": "B",
    "missing": "count",
    "duplicate": "count",
    "early": "count",
    "after_cancel": "count",
    "wrong": "count",
    "out_of_order": "count",
    "unsettled": "count",
    "commands": "count",
    "firings": "count",
    "failure_rate_upper_bound": "1",
    "faults": "count",
    **{f"faults_{kind}": "count" for kind in FAULT_KINDS},
}
"""All possible figures of a round, in display order."""

FAULTS = ("missing", "duplicate", "early", "after_cancel", "wrong", "out_of_order", "unsettled")
"""Figures that must be 0 in every round."""


class Figure(msgspec.Struct, frozen=True):
    """One figure over all rounds."""

    median: float
    min: float
    max: float
    unit: str


def summarised(rounds: Sequence[Mapping[str, float]], units: Mapping[str, str] = UNITS) -> dict[str, Figure]:
    """Return each figure over the rounds that have it, in the order of `units`. Raises KeyError if one has no unit."""
    unknown = {name for figures in rounds for name in figures} - units.keys()
    if unknown:
        raise KeyError(f"no unit is known for {', '.join(sorted(unknown))}")
    values = {name: [figures[name] for figures in rounds if name in figures] for name in units}
    return {
        name: Figure(statistics.median(found), min(found), max(found), units[name])
        for name, found in values.items()
        if found
    }


def has_faults(figures: Mapping[str, Figure]) -> bool:
    """Return whether any promise was broken in any round."""
    return any(figures[name].min or figures[name].max for name in FAULTS if name in figures)


def percentile(ordered: Sequence[int], percent: float) -> int:
    """Return the smallest value that is at least as large as `percent` % of the ascending values (nearest rank)."""
    if not ordered:
        raise ValueError("there is no percentile of nothing")
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]


def p99_by_second(firings: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return, for each second in order, the 99th percentile of lateness (ms) of the firings due in it.

    `firings` are pairs of due time (UTC epoch ms) and lateness (ms).
    """
    by_second: defaultdict[int, list[int]] = defaultdict(list)
    for due, late in firings:
        by_second[due // 1_000].append(late)
    return {second: percentile(sorted(late), 99) for second, late in sorted(by_second.items())}
