"""Slices: long work in the lanes' event loop, a few milliseconds at a time.

After each slice, others get the loop for a multiple of the slice's processor time, since only that was taken from them:
while other processes have the processor, no task of this one can use it. If a slice blocked on the disk or a lock, all
of its time counts. A slice that awaits an answer leaves the loop to others meanwhile.

Infrequent requests rest for a shorter time: a worker's `Credit` grows while there are none.
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
"""How long a slice holds up the loop."""

REST = 9.0
"""How long others have the loop after a slice, as a multiple of it. It applies even if no task is ready: tasks that
wait for the broker are not visible."""

SHORT_REST = 3.0
"""The same for answers that clients wait for only a few seconds, however much there is to read."""

CREDIT_S = 0.05
CREDIT_REST = 2.0
"""Processor time that all requests of a worker may use with short rests after an idle time, and the length of these
rests in slices. On average, others still have the loop for `REST` slices after each."""

SEARCH_TIME_S = 0.015
"""Processor time for a page if most rows do not match. With rests it takes up to ten times as long. It is short, so
that the client soon sees the first results, and continues with the cursor."""

ROWS_AT_ONCE = 500
"""Rows to read between two looks at the clock. They take less than a slice."""

T = TypeVar("T")

BETWEEN_SLICES: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("between slices", default=None)
"""For a request that shares its turn: gives slices to other requests (see `sliced_turns`)."""


def pieces(rows: Iterator[T]) -> Iterator[list[T]]:
    """Yield rows, some at a time."""
    while piece := [*islice(rows, ROWS_AT_ONCE)]:
        yield piece


def waits() -> int | None:
    """Return how often this thread has blocked so far, such as on a disk or a lock; None if the system does not
    tell."""
    return resource.getrusage(_THIS_THREAD).ru_nvcsw if _THIS_THREAD is not None else None


_THIS_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)


class Credit:
    """Processor time that requests may use with short rests. It grows with the clock, up to `most_s`.

    All slices are subtracted, so the average is the same as with long rests alone. It never falls below `-most_s`, so
    it soon recovers, however many requests there were.
    """

    def __init__(self, most_s: float = CREDIT_S) -> None:
        self._most_s = self._left_s = most_s
        self._counted_at = perf_counter()

    def covers(self, seconds: float) -> bool:
        """Subtract this time. Return whether the credit covered it."""
        now = perf_counter()
        self._left_s = min(self._most_s, self._left_s + (now - self._counted_at) / (1 + REST))
        self._counted_at = now
        is_covered = seconds <= self._left_s
        self._left_s = max(-self._most_s, self._left_s - seconds)
        return is_covered


_OF_THIS_WORKER = Credit()


class LoopTime:
    """The loop's time that one request uses. A context manager: a slice begins when it is entered and after each
    `rest`. It also rests at the end, so that many short requests take no more than a long one.

    A slice ends by the clock, since others wait for it. The sum is processor time, at most `most_s`, so a busy machine
    does not make answers shorter. `rest` is how long others then have the loop, in slices, unless `credit` covers the
    slice. Other requests may have slices after that, before the method `rest` returns; it raises what `BETWEEN_SLICES`
    does. After a last slice shorter than `spared_s` it does not rest. The first slice counts as if it had already held
    up the loop for `held_s`, for earlier work that did not rest.
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
        """Return for how long this slice has held up the loop so far, which determines the rest."""
        has_run = self._waits is not None and waits() == self._waits
        return self._held_s + (thread_time() - self._cpu_began if has_run else perf_counter() - self._began)

    def slice_is_over(self) -> bool:
        return self._held_s + perf_counter() - self._began >= SLICE_S

    def is_used_up(self) -> bool:
        """Whether the request has used all of its time."""
        return self.has_taken(self._most_s)

    def has_taken(self, seconds: float) -> bool:
        """Whether the request has used this much processor time."""
        return self._used_s + thread_time() - self._cpu_began >= seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the loop to others while awaiting an answer. That time is not part of a slice, and counts as rest."""
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
