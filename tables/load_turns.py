"""Turns to fill empty tables: a worker fills few at a time, and lanes come before standbys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

MAX_LOADS = 2
"""Maximum number of empty tables that a worker fills at a time in its own process."""


class Loads:
    """Limits the number of tables that are filled at a time.

    A partition fires nothing until its lane has its table, while a standby can wait. So a standby gets no turn while a
    lane's table is announced. If there are several turns, standbys never take the last one: it stays free for a lane
    that starts later.
    """

    def __init__(self, turns: int = MAX_LOADS) -> None:
        self._free = turns
        self._for_standbys = max(1, turns - 1)
        self._announced: set[object] = set()
        self._moved = asyncio.Event()

    def announce(self, copy: object) -> None:
        """Announce that a lane needs its table, until `withdraw`."""
        self._announced.add(copy)

    def withdraw(self, copy: object) -> None:
        """Withdraw the announcement: the lane has its table, or does not need it for now."""
        self._announced.discard(copy)
        self._moved.set()

    def look_again(self) -> None:
        """Make waiting tasks check whether they still want a turn."""
        self._moved.set()

    @asynccontextmanager
    async def turn(self, *, is_lane: bool, stopping: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for a turn and hold it. Proceeds without a turn if `stopping` returns True."""
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
