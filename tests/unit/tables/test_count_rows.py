"""Rows of counts: which of them can have the cells of some groups, and the bytes of their keys."""

from __future__ import annotations

from unittest.mock import patch

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.tables import count_rows
from light_scheduler.tables.count_rows import CHANGES, CHANGES_END, Place, cut_up, keys_of, keys_with, place_in

PLACE = Place(20_454, 1, 3)
KEY = b"c" + bytes.fromhex("00004fe6 01 03")
numbers = st.integers(0, 12) | st.sampled_from([0xFFFFFFFD, 0xFFFFFFFE])
cells = st.dictionaries(
    st.builds(lambda group, minute: group << 32 | minute, numbers, st.sampled_from([0, 1, 7, 0xFFFFFFFF])),
    st.integers(-3, 3),
    min_size=1,
)


def test_a_row_is_named_by_its_place_and_its_last_cell() -> None:
    run, rows = cut_up(PLACE, {2 << 32 | 5: 1, 1 << 32 | 9: -1})
    assert run == [2 << 32 | 5]
    assert list(rows) == keys_of(PLACE, run) == [KEY + bytes.fromhex("00000002 00000005")]
    assert place_in(*rows) == (PLACE, 2 << 32 | 5)


def test_a_run_of_an_older_version_is_one_row_named_by_its_place() -> None:
    assert keys_of(PLACE, []) == keys_with(PLACE, [], [7]) == [KEY]
    assert place_in(KEY) == (PLACE, None)


@given(cells=cells, groups=st.sets(numbers), size=st.integers(1, 4))
def test_rows_with_groups_are_those_that_have_cells_of_them_and_at_most_one_more_for_each(
    cells: dict[int, int], groups: set[int], size: int
) -> None:
    with patch.object(count_rows, "ROW_CELLS", size):
        run, rows = cut_up(PLACE, cells)
    decoded = {key: msgspec.msgpack.decode(row, type=dict[int, int]) for key, row in rows.items()}
    assert list(rows) == sorted(rows)
    assert all(CHANGES < key < CHANGES_END for key in rows)
    assert sum(map(len, decoded.values())) == len(cells)
    assert {cell: change for row in decoded.values() for cell, change in row.items()} == cells
    assert max(map(len, decoded.values())) <= size
    found = keys_with(PLACE, run, sorted(groups))
    needed = {key for key, row in decoded.items() if any(cell >> 32 in groups for cell in row)}
    assert needed <= set(found) <= rows.keys()
    assert found == sorted(set(found))
    assert len(found) - len(needed) <= len(groups)
