"""The largest of many counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.web.limits.largest import Largest


@given(st.lists(st.lists(st.integers(1, 5), max_size=9), max_size=9), st.integers(1, 4))
def test_the_largest_are_found_however_the_counts_come(parts: list[list[int]], most: int) -> None:
    largest: Largest[int] = Largest(most)
    every: list[tuple[int, int]] = []
    for part in parts:
        counts = [(len(every) + number, count) for number, count in enumerate(part)]
        every += counts
        largest.add(counts)
    assert largest.found() == sorted(every, key=lambda each: -each[1])[:most]
