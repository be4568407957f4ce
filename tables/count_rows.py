"""Rows of changes of counts (see `counts`): their keys, how runs are split into rows, and which rows a group needs.

The cells at one place of a book are a *run*: they are sorted and split into rows of at most `ROW_CELLS`. The key of a
row ends with its last cell, and these are kept in memory. So reading some groups only reads rows that can have their
cells, however many rows other groups have.

    row     'c' | book u32 | level u8 | slot u8 | last cell u64   -> MessagePack {cell u64: change}

Before format 9, a run is one row in any order, and its key has no cell. Such runs can still be read.
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
"""Sorts after all rows of changes."""

ROW_CELLS = 128
"""Maximum number of cells in a row. Reading one cell reads a row, about 20 us; each row takes one number in memory."""

Run = list[int]
"""The last cell of each row of a run, in order; empty for a run from before format 9, which is one row."""

_LOW = 0xFFFFFFFF
_PLACE = struct.Struct(">IBB")
_ROW = struct.Struct(">IBBQ")
_encode = msgspec.msgpack.Encoder().encode


class Place(NamedTuple):
    """The place of a run."""

    book: int
    level: int
    slot: int


def place_in(key: bytes) -> tuple[Place, int | None]:
    """Return the place and the last cell in the key of a row. The cell is None if the row is a whole run."""
    if len(key) == len(CHANGES) + _PLACE.size:
        return Place(*_PLACE.unpack(key[1:])), None
    book, level, slot, last = _ROW.unpack(key[1:])
    return Place(book, level, slot), last


def keys_of(place: Place, run: Run) -> list[bytes]:
    """Return the keys of a run's rows, in order."""
    return [CHANGES + _ROW.pack(*place, last) for last in run] or [CHANGES + _PLACE.pack(*place)]


def keys_with(place: Place, run: Run, groups: Sequence[int]) -> list[bytes]:
    """Return the keys of rows that can have cells of these groups (sorted numbers), in order."""
    if not run:
        return keys_of(place, run)
    return [CHANGES + _ROW.pack(*place, run[row]) for row in _rows_with(run, groups)]


def cut_up(place: Place, cells: Mapping[int, int]) -> tuple[Run, dict[bytes, bytes]]:
    """Split cells, at least one, into the rows of a run at a place. Return the run and its rows."""
    rows = [cells] if len(cells) <= ROW_CELLS else list(_in_order(cells))
    run = [max(row) for row in rows]
    return run, dict(zip(keys_of(place, run), map(_encode, rows), strict=True))


def _in_order(cells: Mapping[int, int]) -> Iterator[dict[int, int]]:
    rest = iter(sorted(cells))
    while row := list(islice(rest, ROW_CELLS)):
        yield {cell: cells[cell] for cell in row}


def _rows_with(run: Run, groups: Sequence[int]) -> list[int]:
    """Return the indices of rows that can have cells of these groups.

    Takes time in proportion to the number of groups or rows, whichever is smaller.
    """
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
