"""How long a thread waits for a processor: whether the machine has less of them than is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Of Linux, for the thread that reads it: nanoseconds on a processor and waiting for one, then the number of turns."""

WINDOW_S, OLD_S = 0.2, 1.0
"""How old a reading is at least when the next one is made, and at most when that tells something of the present."""

LEAST = 0.1
"""A thread that waits for less than this part of the time does not lack processors, however little it runs."""


class ProcessorWaits:
    """For the thread that asks for `share`. `monotonic` is in seconds."""

    def __init__(self, monotonic: Callable[[], float], schedstat: Path = SCHEDSTAT) -> None:
        self._monotonic = monotonic
        self._schedstat = schedstat
        self._share = 0.0
        self._read_at = float("-inf")
        self._ran_s, self._waited_s = 0.0, 0.0

    def share(self) -> float:
        """Return which share of the time in which the thread had something to do it waited, lately; 0.0: not known."""
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
