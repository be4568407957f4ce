"""A clock that a test drives and worker processes go by.

It is the machine's, behind by some time, and can be moved on: over an outage of hours, or to the end of a minute. It is
ahead only where a clock that is wrong is the matter, and never by an hour: a broker refuses records whose timestamps
are so far in its future.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
from pathlib import Path
from typing import Self

from light_scheduler.clock import SystemClock

MINUTE = 60_000
HOUR = 60 * MINUTE


class DrivenClock:
    """By how many ms it is behind stands in a file that processes share. Instants are UTC epoch ms."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._behind = mmap.mmap(file.fileno(), 8)
        self._machine = SystemClock()

    @classmethod
    def create(cls, path: Path, *, behind: int) -> Self:
        path.write_bytes(struct.pack("q", behind))
        return cls(path)

    def now(self) -> int:
        (behind,) = struct.unpack("q", self._behind[:8])
        return self._machine.now() - int(behind)

    def step(self, *, behind: int) -> None:
        """Set it, back or forth."""
        self._behind[:8] = struct.pack("q", behind)

    def advance(self, ms: int) -> None:
        """Move on, by no more than it is behind."""
        (behind,) = struct.unpack("q", self._behind[:8])
        assert 0 <= ms <= behind, f"{ms} ms of {behind}"
        self._behind[:8] = struct.pack("q", behind - ms)

    def advance_to(self, instant: int) -> None:
        """Move on to an instant, unless it is later already."""
        self.advance(max(0, instant - self.now()))

    def let_minute_end_in(self, ms: int) -> int:
        """Move on to where a minute ends in so many ms; return when that is."""
        end = end_of_minute(self.now() + ms)
        self.advance_to(end - ms)
        return end

    async def reaches(self, instant: int) -> None:
        """Return when it is that late."""
        await asyncio.sleep(max(0, instant - self.now()) / 1_000)


def end_of_minute(instant: int) -> int:
    """Return when the minute of an instant ends."""
    return (instant // MINUTE + 1) * MINUTE
