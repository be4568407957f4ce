"""The size of cycles: small enough that commands and firings that arrive meanwhile do not wait long."""

from __future__ import annotations

CYCLE_MS = 200
"""Target duration of a cycle. A firing that is due just after one has begun is delivered at the end of the next."""

LEAST, MOST = 250, 5_000
"""The range of a cycle's limit of commands, or firings. More saves nothing, as a transaction costs some ms."""


class Pace:
    """Learns from cycles how many commands, or firings, take `CYCLE_MS`. `limit` is that number.

    Lanes of a process share one thread, so the duration of a cycle depends on how many others are busy.
    """

    def __init__(self) -> None:
        self.limit = MOST

    def observe(self, events: int, took_ms: int) -> None:
        """Learn from the duration of a cycle with this many events. Cycles with few events are ignored."""
        if 2 * events >= self.limit:
            fitting = events * CYCLE_MS // max(1, took_ms)
            self.limit = max(LEAST, min(fitting, 2 * self.limit, MOST))
