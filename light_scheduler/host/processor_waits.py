"""How long a thread waits for a processor, which shows whether the machine has too few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Linux file about the thread that reads it: nanoseconds on a processor, nanoseconds of waiting for one, number of
turns."""

WINDOW_S, OLD_S = 0.2, 1.0
"""Minimum age of a reading before the next one, and maximum age for it to describe the present."""

LEAST = 0.1
"""A thread that waits for less than this share of the time does not lack processors, however little it runs."""


class ProcessorWaits:
    """Measures the thread that calls `share`. `monotonic` is in seconds."""

    def __init__(self, monotonic: Callable[[], float], schedstat: Path = SCHEDSTAT) -> None:
        self._monotonic = monotonic
        self._schedstat = schedstat
        self._share = 0.0
        self._read_at = float("-inf")
        self._ran_s, self._waited_s = 0.0, 0.0

    def share(self) -> float:
        """Return the recent share of waiting in the time when the thread had work to do; 0.0 if not known."""
        now = self._monotonic()
        if (since_s := now - self._read_at) >= WINDOW_S:
            self._read_at = now
            self._share = self._look(since_s)
        return self._share

    def _look(self, since_s: float) -> float:
        try:
            ran_s, waited_s = (int(ns) / 1e9 for ns in self._schedstat.read_bytes().split()[:2])
        except (OSError, ValueError):  # another system, or a kernel without it
            return 0.0
        newly_ran_s, newly_waited_s = ran_s - self._ran_s, waited_s - self._waited_s
        self._ran_s, self._waited_s = ran_s, waited_s
        if since_s > OLD_S or newly_waited_s < LEAST * since_s:
            return 0.0
        return newly_waited_s / (newly_ran_s + newly_waited_s)
