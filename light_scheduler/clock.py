"""The clock: the one place where the time of day is read."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the scheduler takes the time from."""

    def now(self) -> int:
        """Return the time in UTC epoch milliseconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class SettableClock:
    """A clock that stands still until it is moved: for tests, dry runs and simulations."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def set(self, now: int) -> None:
        """Move to an instant (UTC epoch ms), back or forth."""
        self._now = now

    def advance(self, ms: int) -> None:
        """Move by a number of milliseconds."""
        self._now += ms
