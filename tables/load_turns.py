"""Turns for filling empty tables: a worker fills few at a time, those of its lanes before those of its standbys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

MAX_LOADS = 2
"""Tables that a worker fills from nothing at a time, if it does it itself."""


class Loads:
    """Bounds how many tables are filled at a time.

    A partition fires nothing until its lane has its table, while a standby can wait. So a standby gets no turn while
    any lane's table is announced, and standbys together never take the last turn if there are several: a lane that
    comes later finds one free.
    """

    def __init__(self, turns: int = MAX_LOADS) -> None:
        self._free = turns
        self._for_standbys = max(1, turns - 1)
        self._announced: set[object] = set()
        self._moved = asyncio.Event()

    def announce(self, copy: object) -> None:
        """Note that a lane will want its table, until `withdraw`."""
        self._announced.add(copy)

    def withdraw(self, copy: object) -> None:
        """Note that a lane has its table, or does not want it for now."""
        self._announced.discard(copy)
        self._moved.set()

    def look_again(self) -> None:
        """Have those that wait for their turn ask whether they still want it."""
        self._moved.set()

    @asynccontextmanager
    async def turn(self, *, is_lane: bool, stopping: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for a turn and hold it; without one, go on when `stopping` says so."""
        while not (is_free := self._is_free(is_lane)) and not stopping():
            self._moved.clear()
            await self._moved.wait()
        self._take(is_lane, is_free)
        try:
            yield
        finally:
            self._take(is_lane, -is_free)
            self._moved.set()

    def _is_free(self, is_lane: bool) -> bool:
        return self._free > 0 and (is_lane or (self._for_standbys > 0 and not self._announced))

    def _take(self, is_lane: bool, turns: int) -> None:
        self._free -= turns
        if not is_lane:
            self._for_standbys -= turns
