"""Serialises concurrent work on the same thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager


class OneByOne:
    """Hands out turns. A turn waits for earlier ones that share a name with it."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def turn(self, names: Iterable[Hashable]) -> AsyncIterator[None]:
        """Wait until all earlier turns with one of the names are over. Turns are ordered by their entry."""
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
