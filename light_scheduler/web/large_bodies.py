"""Large bodies of commands: each is read at one go, which can take longer than a slice, so they are read one at a time.

After one that takes so long, or several in one round of the loop, others have the loop for a multiple of what reading
them took. A plain payload takes far less, even a large one. A small body takes about as long as any other request, and
waits for nothing. A batch has many of them: whoever reads its lines rests after those that together take a slice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from .slices import SHORT_REST, SLICE_S, LoopTime
from .turns import Turns

LARGE_BYTES = 64 << 10
"""From this size on, reading a body can take longer than a slice."""

T = TypeVar("T")


class LargeBodies:
    """Those of one worker; holders have their `turns`."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._held_s = 0.0  # for how long reading has held up this round of the loop

    async def read(self, body: bytes, read: Callable[[], T]) -> T:
        """Read a body with a function, and return what that does. If it took long, others have the loop before.

        Raises ProblemError (429) if too many large ones wait already, or for too long, and what `read` raises.
        """
        if len(body) < LARGE_BYTES:
            return read()
        async with self._turns.turn(), LoopTime(rest=SHORT_REST, spared_s=SLICE_S, held_s=self._held_s) as time:
            try:
                return read()
            finally:
                self._count(time.held_s())

    def _count(self, held_s: float) -> None:
        if not self._held_s:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._held_s = held_s

    def _begin_round(self) -> None:
        self._held_s = 0.0


class LinesOfBatch:
    """The reading of one batch's lines, one after the other."""

    def __init__(self, bodies: LargeBodies) -> None:
        self._bodies = bodies
        self._held_s = 0.0  # for how long reading has held up the loop since the last rest

    async def read(self, line: bytes, read: Callable[[], T]) -> T:
        """Read a line as `LargeBodies.read` does a body. Others have the loop after small ones that took long, too."""
        if len(line) >= LARGE_BYTES:
            return await self._bodies.read(line, read)
        async with LoopTime(rest=SHORT_REST, spared_s=SLICE_S, held_s=self._held_s) as time:
            try:
                return read()
            finally:
                held_s = time.held_s()
                self._held_s = held_s if held_s < SLICE_S else 0.0
