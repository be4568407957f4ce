"""Slices: long work in the lanes' event loop, a few milliseconds at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from math import inf
from time import perf_counter, thread_time
from typing import Self, TypeVar

SLICE_S = 0.002
"""How long the loop is held up at one go."""

REST = 9.0
"""How long others then have the loop, in slices, even if they have nothing to do: what waits for the broker cannot be
seen to be at work."""

SHORT_REST = 3.0
"""The same for answers that are waited for only some seconds, however much there is to read."""

ROWS_AT_ONCE = 500
"""Rows that take less than a slice, to be read between two looks at the clock."""

T = TypeVar("T")


def pieces(rows: Iterator[T]) -> Iterator[list[T]]:
    """Yield rows, some at a time."""
    while piece := [*islice(rows, ROWS_AT_ONCE)]:
        yield piece


class LoopTime:
    """The loop's time that one request takes. A context manager: a slice begins with it and after each `rest`; it rests
    in the end, too, so that many short requests take no more than a long one.

    A slice is measured by the clock, since others wait for it. The sum is processor time, at most `most_s`: a busy
    machine makes no answer shorter. `rest` is how long others then have the loop, in slices.
    """

    def __init__(self, most_s: float = inf, rest: float = REST) -> None:
        self._most_s = most_s
        self._rest = rest
        self._used_s = 0.0

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is not asyncio.CancelledError:
            await self.rest()

    def slice_is_over(self) -> bool:
        return perf_counter() - self._began >= SLICE_S

    def is_used_up(self) -> bool:
        """Whether the request has taken all the time that it may take."""
        return self._used_s + thread_time() - self._cpu_began >= self._most_s

    async def rest(self) -> None:
        """Let others run."""
        self._used_s += thread_time() - self._cpu_began
        await asyncio.sleep((perf_counter() - self._began) * self._rest)
        self._begin()

    def _begin(self) -> None:
        self._began, self._cpu_began = perf_counter(), thread_time()
