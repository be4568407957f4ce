"""An event loop without sockets, in which time passes only when nothing else is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs what is ready in order; with nothing ready, the time becomes that of the next timer. Starts at 0 s."""

    def __init__(self) -> None:
        super().__init__()
        self._simulated_time = 0.0
        self._selector = self
        self.set_exception_handler(_ignore)

    def time(self) -> float:
        return self._simulated_time

    def select(self, timeout: float | None) -> list[Any]:
        """Stand in for a selector: nothing ever comes from outside."""
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        self._simulated_time += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""


def _ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """What ends with a process that was killed is told to nobody."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own, then cancel whatever it left behind."""
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
