"""The difference between a worker's clock and the broker's, measured from the answers to its transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable

WARN_AGAIN_S = 60.0

log = logging.getLogger(__name__)


def skew_ms(sent: int, appended: int, answered: int) -> int:
    """Return how far (ms) this worker's clock is at least ahead of the broker's, or behind it if negative.

    The broker appended a record between the request and its answer, so only a difference beyond that time is skew.
    """
    return max(0, sent - appended) + min(0, answered - appended)


class ClockSkew:
    """The latest skew of a lane. Warns of skew above `limit` (ms), once a minute and when its sign changes.

    `time` is a monotonic clock in s.
    """

    def __init__(self, name: str, limit: int, time: Callable[[], float]) -> None:
        self.ms: int | None = None
        self._name = name
        self._limit = limit
        self._time = time
        self._warned_at = 0.0
        self._warned_side: str | None = None

    def observe(self, sent: int, appended: int, answered: int) -> None:
        """Process the broker's time of a record, and this worker's time before and after."""
        self.ms = skew_ms(sent, appended, answered)
        if abs(self.ms) <= self._limit:
            return
        side, now = "ahead of" if self.ms > 0 else "behind", self._time()
        if side != self._warned_side or now - self._warned_at >= WARN_AGAIN_S:
            self._warned_side, self._warned_at = side, now
            log.warning(
                "%s: this worker's clock is %d ms %s the broker's; firings are early or late by as much: check NTP",
                self._name,
                abs(self.ms),
                side,
            )
