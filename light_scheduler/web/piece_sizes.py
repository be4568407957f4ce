"""How much of each partition a backward search reads next, so that all of them reach the same instant together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reached(NamedTuple):
    """How far back a partition was read: `records` of them, the oldest `age_ms` before the newest of all partitions.

    `left` offsets remain before that, at least one.
    """

    left: int
    records: int
    age_ms: int


def piece_sizes(reached: Mapping[int, Reached], size: int) -> dict[int, int]:
    """Return how many offsets to read of which partitions, about `size` in all. Partitions that were already read
    further back than this piece reaches are left out.

    It assumes that records stay as dense as they were so far. Before anything was read, it assumes that all partitions
    begin at the same instant.
    """
    density = {number: (each.records or each.left) / (each.age_ms + 1) for number, each in reached.items()}
    chosen: dict[int, int] = {}
    records, per_ms = float(size), 0.0  # records between the newest and the target age, and their density
    for number, each in sorted(reached.items(), key=lambda item: item[1].age_ms):
        if chosen and records / per_ms <= each.age_ms:
            break
        chosen[number] = each.age_ms
        records += density[number] * each.age_ms
        per_ms += density[number]
    return {
        number: min(reached[number].left, max(1, round(density[number] * (records / per_ms - age_ms))))
        for number, age_ms in chosen.items()
    }
