"""Arithmetic on changes of counts by cell (see `counts`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from light_scheduler.errors import FormatError

T = TypeVar("T")
C = TypeVar("C", bytes, int)


def added_up(changes: Iterable[Mapping[int, int]]) -> Counter[int]:
    """Return the sum of changes by cell, without zeros."""
    total: dict[int, int] = {}
    known = total.get
    for each in changes:
        if total:
            for cell, change in each.items():
                total[cell] = known(cell, 0) + change
        else:
            total.update(each)
    return Counter(but_for_zeros(total))


def by_group(cells: dict[int, int]) -> dict[int, int]:
    """Return the sum of changes by group. Needs at least one cell."""
    first = min(cells) >> 32
    if first == max(cells) >> 32:  # nearly always
        return {first: sum(cells.values())}
    groups: defaultdict[int, int] = defaultdict(int)
    for cell, change in cells.items():
        groups[cell >> 32] += change
    return groups


def but_for_zeros(changes: dict[C, int]) -> dict[C, int]:
    """Return the changes that are not 0."""
    return {cell: change for cell, change in changes.items() if change} if 0 in changes.values() else changes


def decoded(decode: Callable[[bytes], T], value: bytes) -> T:
    """Decode a row of counts. Raises FormatError."""
    try:
        return decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(f"the table's counts cannot be read: {error}") from error
