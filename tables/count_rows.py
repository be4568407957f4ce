"""Rows of changes of counts (see `counts`): how they are named and cut up, and which of them have the cells of a group.

What is written to one place of a book is a *run*: its cells in order, in rows of which each has `ROW_CELLS` or fewer.
The key of a row ends with its last cell, so memory knows which rows can have the cells of a group: how many rows others
have makes no difference to who reads those of some groups.

    row     'c' | book u32 | level u8 | slot u8 | last cell u64   -> MessagePack {cell u64: change}

Tables before format 9 have each run in one row, in any order, and its key without a cell. Such a run is read as it is.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

CHANGES = b"c"
CHANGES_END = b"d"
"""Above all rows of changes."""

ROW_CELLS = 128
"""Whoever wants one cell reads so many, which takes some 20 us; memory has a number for each row."""

Run = list[int]
"""The last cell of each of its rows, in order; none: it is one row as tables before format 9 have it."""

_LOW = 0xFFFFFFFF
_PLACE = struct.Struct(">IBB")
_ROW = struct.Struct(">IBBQ")
_encode = msgspec.msgpack.Encoder().encode


class Place(NamedTuple):
    """Where a run is."""

    book: int
    level: int
    slot: int


def place_in(key: bytes) -> tuple[Place, int | None]:
    """Return the place that the key of a row holds, and its last cell; None: the row is a whole run."""
    if len(key) == len(CHANGES) + _PLACE.size:
        return Place(*_PLACE.unpack(key[1:])), None
    book, level, slot, last = _ROW.unpack(key[1:])
    return Place(book, level, slot), last


def keys_of(place: Place, run: Run) -> list[bytes]:
    """Return the keys of a run's rows, in order."""
    return [CHANGES + _ROW.pack(*place, last) for last in run] or [CHANGES + _PLACE.pack(*place)]


def keys_with(place: Place, run: Run, groups: Sequence[int]) -> list[bytes]:
    """Return the keys of the rows that can have cells of some groups (numbers, in order), in order."""
    if not run:
        return keys_of(place, run)
    return [CHANGES + _ROW.pack(*place, run[row]) for row in _rows_with(run, groups)]


def cut_up(place: Place, cells: Mapping[int, int]) -> tuple[Run, dict[bytes, bytes]]:
    """Return the run that cells become at a place, of which there are some, and its rows."""
    rows = [cells] if len(cells) <= ROW_CELLS else list(_in_order(cells))
    run = [max(row) for row in rows]
    return run, dict(zip(keys_of(place, run), map(_encode, rows), strict=True))


def _in_order(cells: Mapping[int, int]) -> Iterator[dict[int, int]]:
    rest = iter(sorted(cells))
    while row := list(islice(rest, ROW_CELLS)):
        yield {cell: cells[cell] for cell in row}


def _rows_with(run: Run, groups: Sequence[int]) -> list[int]:
    """Return which rows can have cells of some groups. It takes as long as there are groups, or rows, if these are
    fewer."""
    if len(groups) < len(run):
        found: set[int] = set()
        for group in groups:
            first = bisect_left(run, group << 32)
            end = bisect_left(run, group << 32 | _LOW, first)
            found.update(range(first, min(end + 1, len(run))))
        return sorted(found)
    firsts = [0, *(last + 1 for last in run[:-1])]
    return [
        row
        for row, (first, last) in enumerate(zip(firsts, run, strict=True))
        if (at := bisect_left(groups, first >> 32)) < len(groups) and groups[at] <= last >> 32
    ]
