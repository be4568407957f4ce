"""The sleep of an idle lane."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from light_scheduler.tables.services import Timer


class Alarm:
    """Wakes a lane when its timer ticks, or when something rings: a command arrives, or a rule changes.

    It stays on until it is reset, so no ring is missed in between.
    """

    def __init__(self, new_timer: Callable[[Callable[[], None]], Timer]) -> None:
        self._rung = asyncio.Event()
        self._timer = new_timer(self.ring)

    def ring(self) -> None:
        """Wake the lane, or keep it from falling asleep."""
        self._rung.set()

    def reset(self) -> None:
        """Switch the alarm off: the next sleep lasts until it rings again."""
        self._rung.clear()

    async def sleep_until(self, due: int | None) -> None:
        """Sleep until the alarm rings, at `due` (UTC epoch ms) or sooner. With None, only something else wakes it."""
        self._timer.arm(due)
        await self._rung.wait()

    async def pause(self, seconds: float) -> None:
        """Sleep for `seconds`, or until the alarm rings."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()

    def close(self) -> None:
        """Stop the timer, and wake the lane for the last time."""
        self._timer.cancel()
        self._rung.set()
