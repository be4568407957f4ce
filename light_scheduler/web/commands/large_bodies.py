"""Large bodies of commands. Decoding one cannot be interrupted and may take longer than a slice, so they are decoded
one at a time.

After decoding a slow body, or several in one round of the loop, the loop is left to others for a multiple of that time.
A plain payload is decoded much faster, even a large one. A small body takes as long as any other request, and waits for
nothing. A batch has many small bodies: its reader rests whenever they add up to a slice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from light_scheduler.web.limits.slices import SHORT_REST, SLICE_S, LoopTime
from light_scheduler.web.limits.turns import Turns

LARGE_BYTES = 64 << 10
"""From this size on, decoding a body can take longer than a slice."""

T = TypeVar("T")


class LargeBodies:
    """The large bodies of one worker. Holders take `turns`."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._held_s = 0.0  # for how long decoding has held up this round of the loop

    async def read(self, body: bytes, read: Callable[[], T]) -> T:
        """Decode a body with `read`, and return the result. If that took long, others get the loop first.

        Raises ProblemError (429) if too many large bodies are waiting, or this one waited too long. Also raises what
        `read` raises.
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
    """Decodes the lines of one batch, one after the other."""

    def __init__(self, bodies: LargeBodies) -> None:
        self._bodies = bodies
        self._held_s = 0.0  # for how long decoding has held up the loop since the last rest

    async def read(self, line: bytes, read: Callable[[], T]) -> T:
        """Decode a line as `LargeBodies.read` decodes a body. Others get the loop also after small lines that took
        long."""
        if len(line) >= LARGE_BYTES:
            return await self._bodies.read(line, read)
        async with LoopTime(rest=SHORT_REST, spared_s=SLICE_S, held_s=self._held_s) as time:
            try:
                return read()
            finally:
                held_s = time.held_s()
                self._held_s = held_s if held_s < SLICE_S else 0.0
