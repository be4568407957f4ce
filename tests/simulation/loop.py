"""An event loop without sockets, in which time passes only when nothing else is left to do."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Handle(asyncio.TimerHandle):
    """What is to be called, without what asyncio keeps of it for debugging."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, loop: SimulatedLoop, context: Context
    ) -> None:
        self._when, self._callback, self._args = when, callback, args
        self._loop, self._context = loop, context
        self._cancelled = self._scheduled = False
        self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._args = ()


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs what is ready in order; with nothing ready, the time becomes that of the next timer. Starts at 0 s.

    What asyncio does besides for sockets, threads and signals is left out: histories are made of tiny steps.
    """

    def __init__(self) -> None:
        super().__init__()
        self._simulated_time = 0.0
        self._soon: deque[asyncio.Handle] = deque()
        self._later: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self.set_exception_handler(_ignore)

    def time(self) -> float:
        return self._simulated_time

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(self._simulated_time, callback, args, self, context or copy_context())
        self._soon.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._simulated_time + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _Handle(when, callback, args, self, context or copy_context())
        heapq.heappush(self._later, (when, next(self._numbers), handle))
        return handle

    def run_until_complete(self, future: Any) -> Any:
        """Run a coroutine or future to its end, and return its result."""
        task = asyncio.ensure_future(future, loop=self)
        asyncio._set_running_loop(self)
        try:
            while not task.done():
                if self._soon:
                    self._run_ready()
                else:
                    self._pass_time()
        finally:
            asyncio._set_running_loop(None)
        return task.result()

    def _run_ready(self) -> None:
        """Run what is ready, in order. What ends with a process that was killed is told to nobody."""
        soon = self._soon
        while soon:
            handle = soon.popleft()
            if not handle._cancelled:
                handle._run()

    def _pass_time(self) -> None:
        """Have the time be that of the next timer; all that are for this instant are ready then."""
        later = self._later
        while later and later[0][2]._cancelled:
            heapq.heappop(later)
        if not later:
            raise RuntimeError("nothing will ever happen again")
        now = self._simulated_time = max(self._simulated_time, later[0][0])
        while later and later[0][0] <= now:
            self._soon.append(heapq.heappop(later)[2])


def _ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """What ends with a process that was killed is told to nobody."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own, then cancel whatever it left behind."""
    loop = SimulatedLoop()
    try:
        result: T = loop.run_until_complete(main)
        return result
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
