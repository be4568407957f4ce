"""Staging: prepares firings ahead of their due time, so that only the commit is left to do then.

The commit is the smaller part of a transaction. So an idle lane begins the transaction a little earlier, waits until
its records are acknowledged, and commits at the due time. Readers of committed records see nothing before that.

An open transaction holds back the readers of all partitions it has touched, whatever others deliver there meanwhile. So
only due times on the grid (full seconds) are staged: many schedules share those, and no others are due just before.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Staging:
    """Settings: firings due on a grid (multiples of `grid_ms`) are prepared `ahead_ms` earlier. 0 disables that."""

    ahead_ms: int = 0
    grid_ms: int = 1_000

    def instant(self, next_due: int | None, now: int) -> int | None:
        """Return the due time to prepare for at the instant `now`, or None. All are UTC epoch ms."""
        if next_due is None or not self._is_staged(next_due) or not self.is_near(next_due, now):
            return None
        return next_due

    def is_near(self, instant: int, now: int) -> bool:
        """Return whether a due time is ahead by at most `ahead_ms`. The clock may have been set back."""
        return 0 < instant - now <= self.ahead_ms

    def waking_time(self, next_due: int | None) -> int | None:
        """Return when a lane has to wake for the next due time."""
        if next_due is None or not self._is_staged(next_due):
            return next_due
        return next_due - self.ahead_ms

    def allows_pause(self, pause_ms: int, now: int) -> bool:
        """Return whether a pause that begins now ends before the next due time on the grid must be prepared."""
        return not self.ahead_ms or pause_ms <= self.grid_ms - now % self.grid_ms - self.ahead_ms

    def _is_staged(self, due: int) -> bool:
        return self.ahead_ms > 0 and due % self.grid_ms == 0


NO_STAGING = Staging()
