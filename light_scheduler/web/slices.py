"""Slices: long work in the lanes' event loop, a few milliseconds at a time.

Others have the loop after each slice, for a multiple of what the slice took from them. That is its processor time:
while other processes have the processor, nobody in this one can use it. A slice that waited, for the disk or a lock,
has kept the loop all that time.
"""

from __future__ import annotations

import asyncio
import resource
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

SEARCH_TIME_S = 0.015
"""Processor time for a page where most of what is read does not match; with its rests it takes ten times as long. It
is short, so whoever waits soon sees what there is, and goes on with the cursor."""

ROWS_AT_ONCE = 500
"""Rows that take less than a slice, to be read between two looks at the clock."""

T = TypeVar("T")


def pieces(rows: Iterator[T]) -> Iterator[list[T]]:
    """Yield rows, some at a time."""
    while piece := [*islice(rows, ROWS_AT_ONCE)]:
        yield piece


def waits() -> int | None:
    """Return how often this thread has waited for a disk, a lock or the like so far; None: the system does not tell."""
    return resource.getrusage(_THIS_THREAD).ru_nvcsw if _THIS_THREAD is not None else None


_THIS_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)


class LoopTime:
    """The loop's time that one request takes. A context manager: a slice begins with it and after each `rest`; it rests
    in the end, too, so that many short requests take no more than a long one.

    A slice ends by the clock, since others wait for it. The sum is processor time, at most `most_s`: a busy machine
    makes no answer shorter. `rest` is how long others then have the loop, in slices.
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
        return self.has_taken(self._most_s)

    def has_taken(self, seconds: float) -> bool:
        """Whether the request has taken so much processor time."""
        return self._used_s + thread_time() - self._cpu_began >= seconds

    async def rest(self) -> None:
        """Let others run."""
        cpu_s = thread_time() - self._cpu_began
        self._used_s += cpu_s
        has_run = self._waits is not None and waits() == self._waits
        await asyncio.sleep((cpu_s if has_run else perf_counter() - self._began) * self._rest)
        self._begin()

    def _begin(self) -> None:
        self._began, self._cpu_began, self._waits = perf_counter(), thread_time(), waits()
