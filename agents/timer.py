"""The timer of a partition: it wakes the lane to scan for due and overdue schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from light_scheduler.clock import Clock


class DueTimer:
    """Ticks when the next schedule of a partition is due, and at least every `tick_ms`.

    The regular tick covers events without a due time, such as a changed clock or a target that is available again.
    """

    def __init__(self, clock: Clock, tick_ms: int, tick: Callable[[], None]) -> None:
        self._clock = clock
        self._tick_ms = tick_ms
        self._tick = tick
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, due: int | None) -> None:
        """Tick at an instant (UTC epoch ms), or after `tick_ms` if that is earlier; None if nothing is pending."""
        self.cancel()
        wait_ms = self._tick_ms if due is None else min(max(due - self._clock.now(), 0), self._tick_ms)
        self._handle = asyncio.get_running_loop().call_later(wait_ms / 1_000, self._tick)

    def cancel(self) -> None:
        """Stop ticking until armed again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
