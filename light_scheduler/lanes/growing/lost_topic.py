"""How many partitions a lost commands topic had, by what is left of it. Pure.

With another number, commands would not find the schedules that are stored: a key would belong to another partition.
"""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model.partitioning import Partitioning


class Remains(NamedTuple):
    """What is left of a commands topic: its changelog, and its last partitioning that workers recorded (None: none).

    `changelog` is the number of partitions, and `written` counts them up to the last one with a record. Only if a
    topic `moves` schedules, they follow their keys when it grows.
    """

    changelog: int
    written: int
    last: Partitioning | None
    moves: bool


class Doubt(NamedTuple):
    """Numbers of partitions that are possible, in ascending order, and why none is certain."""

    numbers: tuple[int, ...]
    reason: str


def partitions_of_lost(remains: Remains) -> int | Doubt:
    """Return how many partitions schedules are distributed over. The changelog may have got more for a growth."""
    changelog, written, last, moves = remains
    if not written:
        return changelog
    if last is None:
        if written == changelog:
            return changelog
        unwritten = f"{written}" if changelog == written + 1 else f"{written} to {changelog - 1}"
        unrecorded, added = (
            ("no worker recorded it", "as after an interrupted `topics grow`")
            if moves
            else ("workers record it only for the dialects `native` and `json`", "as if it was added for a growth")
        )
        return Doubt(
            (written, changelog),
            f"{unrecorded}, and partition {unwritten} of the changelog never had a record, {added}, or if nothing was "
            "scheduled there",
        )
    if last.former is not None and moves and not last.is_settled:
        return Doubt(
            (last.former, last.partitions),
            f"schedules were moving from {last.former} to {last.partitions} partitions. With {last.former}, those that "
            f"had moved can neither fire nor be changed until you run `topics grow --partitions {last.partitions}`. "
            f"With {last.partitions}, all fire, but commands do not find those that had not moved",
        )
    if written > last.partitions or last.partitions > changelog:
        numbers = tuple(sorted({last.partitions, changelog}))
        return Doubt(
            numbers, f"workers recorded {last.partitions}, and {written} of {changelog} changelog partitions have state"
        )
    return last.partitions
