"""The sleep of a lane that has nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from light_scheduler.tables.services import Timer


class Alarm:
    """Ends the sleep of a lane when its timer ticks, or when somebody rings: a command has arrived, or a rule changed.

    It stays on until it is reset, so nothing is missed that rings in between.
    """

    def __init__(self, new_timer: Callable[[Callable[[], None]], Timer]) -> None:
        self._rung = asyncio.Event()
        self._timer = new_timer(self.ring)

    def ring(self) -> None:
        """Wake the lane, or have it not fall asleep."""
        self._rung.set()

    def reset(self) -> None:
        """Have the next sleep last until it rings again."""
        self._rung.clear()

    async def sleep_until(self, due: int | None) -> None:
        """Sleep until it rings; by itself at an instant (UTC epoch ms), or sooner. None: nothing is pending."""
        self._timer.arm(due)
        await self._rung.wait()

    async def pause(self, seconds: float) -> None:
        """Sleep for so long, or until it rings."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()

    def close(self) -> None:
        """Wake the lane for the last time: its timer ticks no more."""
        self._timer.cancel()
        self._rung.set()
