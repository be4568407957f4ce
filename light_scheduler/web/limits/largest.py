"""The largest of many counts, fed in parts."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")


class Largest(Generic[T]):
    """Keeps the `most` largest counts; among equal ones, the earliest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[T, int]] = []
        self._least = 0
        """Counts up to this are not among the largest."""

    def add(self, counts: Iterable[tuple[T, int]]) -> None:
        """Add counts, all above 0."""
        self._kept += [each for each in counts if each[1] > self._least]
        if len(self._kept) > 2 * self._most:
            self._kept = self.found()
            self._least = self._kept[-1][1]

    def found(self) -> list[tuple[T, int]]:
        """Return the largest counts, in descending order."""
        return heapq.nlargest(self._most, self._kept, key=itemgetter(1))
