"""Firings that were promised and delivered, as counts: there may be more of them than fit into memory."""

from __future__ import annotations

from collections import Counter

from light_scheduler.engine.firing_rules import MINUTE_MS


class Deliveries:
    """Numbers of firings by the minute in which they fired (UTC epoch ms), and by how late they were (ms)."""

    def __init__(self) -> None:
        self.number = 0
        self.minutes: Counter[int] = Counter()
        self.lateness: Counter[int] = Counter()

    def add(self, at: int, late: int | None) -> None:
        """Count a firing; nobody may know how much later than possible it was."""
        self.number += 1
        self.minutes[at // MINUTE_MS * MINUTE_MS] += 1
        if late is not None:
            self.lateness[lateness_step(late)] += 1


def lateness_step(ms: int) -> int:
    """Return a lateness as it is counted: three digits of it, so that there are few different ones."""
    scale: int = 10 ** max(0, len(str(abs(ms))) - 3)
    return ms // scale * scale
