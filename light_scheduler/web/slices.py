"""Slices: long work in the lanes' event loop, a few milliseconds at a time.

Others have the loop after each slice, for a multiple of what the slice took from them. That is its processor time:
while other processes have the processor, nobody in this one can use it. A slice that waited, for the disk or a lock,
has kept the loop all that time. One that awaits an answer leaves the loop to the others meanwhile.

Requests that come seldom rest for a shorter time: a worker's `Credit` grows while there are none.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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

CREDIT_S = 0.05
CREDIT_REST = 2.0
"""Processor time that all requests of a worker may take with short rests after a time without any, and how long those
are, in slices. On average others still have the loop for `REST` slices after each."""

SEARCH_TIME_S = 0.015
"""Processor time for a page where most of what is read does not match; with its rests it takes up to ten times as long.
It is short, so whoever waits soon sees what there is, and goes on with the cursor."""

ROWS_AT_ONCE = 500
"""Rows that take less than a slice, to be read between two looks at the clock."""

T = TypeVar("T")

BETWEEN_SLICES: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("between slices", default=None)
"""Lets other requests have slices, of a request that shares its turn with them (see `sliced_turns`)."""


def pieces(rows: Iterator[T]) -> Iterator[list[T]]:
    """Yield rows, some at a time."""
    while piece := [*islice(rows, ROWS_AT_ONCE)]:
        yield piece


def waits() -> int | None:
    """Return how often this thread has waited for a disk, a lock or the like so far; None: the system does not tell."""
    return resource.getrusage(_THIS_THREAD).ru_nvcsw if _THIS_THREAD is not None else None


_THIS_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)


class Credit:
    """Processor time that requests may take with short rests. It grows with the clock, up to `most_s`.

    All slices are taken off it, so the average is what it would be with long rests alone. It never falls below
    `-most_s`: it is soon there again, however many requests there were.
    """

    def __init__(self, most_s: float = CREDIT_S) -> None:
        self._most_s = self._left_s = most_s
        self._counted_at = perf_counter()

    def covers(self, seconds: float) -> bool:
        """Take so much off it; return whether it had that."""
        now = perf_counter()
        self._left_s = min(self._most_s, self._left_s + (now - self._counted_at) / (1 + REST))
        self._counted_at = now
        is_covered = seconds <= self._left_s
        self._left_s = max(-self._most_s, self._left_s - seconds)
        return is_covered


_OF_THIS_WORKER = Credit()


class LoopTime:
    """The loop's time that one request takes. A context manager: a slice begins with it and after each `rest`; it rests
    in the end, too, so that many short requests take no more than a long one.

    A slice ends by the clock, since others wait for it. The sum is processor time, at most `most_s`: a busy machine
    makes no answer shorter. `rest` is how long others then have the loop, in slices, unless `credit` covers the slice.
    Other requests may have slices after that, before `rest` returns: it raises what `BETWEEN_SLICES` does. After a last
    slice of less than `spared_s` it does not rest. The first slice counts as if it had held up the loop for `held_s`
    before: others that did not rest for that have had it.
    """

    def __init__(
        self,
        most_s: float = inf,
        rest: float = REST,
        credit: Credit = _OF_THIS_WORKER,
        spared_s: float = 0.0,
        held_s: float = 0.0,
    ) -> None:
        self._most_s = most_s
        self._rest = rest
        self._credit = credit
        self._spared_s = spared_s
        self._between = BETWEEN_SLICES.get()
        self._used_s = 0.0
        self._held_s, self._free_s = held_s, 0.0  # how long this slice has held up the loop, and left it to others

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        self._between = None
        if kind is not asyncio.CancelledError and self.held_s() >= self._spared_s:
            await self.rest()

    def held_s(self) -> float:
        """Return how long this slice has held up the loop so far, as others are given it for."""
        has_run = self._waits is not None and waits() == self._waits
        return self._held_s + (thread_time() - self._cpu_began if has_run else perf_counter() - self._began)

    def slice_is_over(self) -> bool:
        return self._held_s + perf_counter() - self._began >= SLICE_S

    def is_used_up(self) -> bool:
        """Whether the request has taken all the time that it may take."""
        return self.has_taken(self._most_s)

    def has_taken(self, seconds: float) -> bool:
        """Whether the request has taken so much processor time."""
        return self._used_s + thread_time() - self._cpu_began >= seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the loop to others while an answer is awaited: that is part of no slice, and counts as a rest."""
        self._end()
        began = perf_counter()
        try:
            yield
        finally:
            self._free_s += perf_counter() - began
            self._begin()

    async def rest(self) -> None:
        """Let others run."""
        self._end()
        rest = min(self._rest, CREDIT_REST) if self._credit.covers(self._held_s) else self._rest
        pause_s = max(0.0, self._held_s * rest - self._free_s)
        self._held_s = self._free_s = 0.0
        await asyncio.sleep(pause_s)
        try:
            if self._between is not None:
                await self._between()
        finally:
            self._begin()

    def _begin(self) -> None:
        self._began, self._cpu_began, self._waits = perf_counter(), thread_time(), waits()

    def _end(self) -> None:
        self._used_s += thread_time() - self._cpu_began
        self._held_s = self.held_s()
