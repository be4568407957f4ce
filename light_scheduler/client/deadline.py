"""Until when a blocking call waits."""

from __future__ import annotations

import time


class Deadline:
    """`timeout` seconds from now; several waits share it."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._ends = time.monotonic() + timeout

    @property
    def left(self) -> float:
        """Seconds that are left, never less than 0."""
        return max(0.0, self._ends - time.monotonic())
