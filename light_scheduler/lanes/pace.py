"""The size of cycles: small enough that commands and firings that come meanwhile do not wait for long."""

from __future__ import annotations

CYCLE_MS = 200
"""Intended duration of a cycle. A firing that is due just after one has begun is delivered at the end of the next."""

LEAST, MOST = 250, 5_000
"""Commands, or firings, of a cycle. More than that saves nothing: transactions cost some ms each."""


class Pace:
    """Learns from cycles how many commands, or firings, take `CYCLE_MS`; `limit` is that number.

    Lanes of a process take turns on one thread, so what a cycle takes depends on how many others are busy.
    """

    def __init__(self) -> None:
        self.limit = MOST

    def observe(self, events: int, took_ms: int) -> None:
        """Learn from the duration of a cycle with this many events; a nearly empty cycle is ignored."""
        if 2 * events >= self.limit:
            fitting = events * CYCLE_MS // max(1, took_ms)
            self.limit = max(LEAST, min(fitting, 2 * self.limit, MOST))
