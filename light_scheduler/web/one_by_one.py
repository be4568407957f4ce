"""Runs concurrent work on the same thing one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager


class OneByOne:
    """Hands out turns: one that shares a name with earlier ones waits for them."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def turn(self, names: Iterable[Hashable]) -> AsyncIterator[None]:
        """Wait until all earlier turns with one of the names are over. Turns are in the order of their entering."""
        mine = frozenset(names)
        earlier = {self._last[name] for name in mine if name in self._last}
        over = asyncio.get_running_loop().create_future()
        self._last |= dict.fromkeys(mine, over)
        try:
            if earlier:
                await asyncio.wait(earlier)
            yield
        finally:
            over.set_result(None)
            for name in mine:
                if self._last.get(name) is over:
                    del self._last[name]
