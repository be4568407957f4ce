"""Clocks. This is the only module that reads the time of day."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The scheduler's source of time."""

    def now(self) -> int:
        """Return the time in UTC epoch milliseconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class SettableClock:
    """A clock that only moves when it is set, for tests, dry runs and simulations."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def set(self, now: int) -> None:
        """Move to an instant (UTC epoch ms), backward or forward."""
        self._now = now

    def advance(self, ms: int) -> None:
        """Move by a number of milliseconds."""
        self._now += ms
