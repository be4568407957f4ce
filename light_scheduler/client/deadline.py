"""A deadline for blocking calls."""

from __future__ import annotations

import time


class Deadline:
    """`timeout` seconds from now. Several waits can share it."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._ends = time.monotonic() + timeout

    @property
    def left(self) -> float:
        """Remaining seconds, never negative."""
        return max(0.0, self._ends - time.monotonic())
