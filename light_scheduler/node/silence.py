"""When a process that does not answer counts as hanging."""

from __future__ import annotations

ASK_EVERY_S = 5.0
ANSWER_S = 5.0
MOST_MISSES = 6
"""Ends a hanging process within a minute, long after its partitions have moved to others (`session_timeout`)."""


class Silence:
    """Counts consecutive health checks that a process has not answered, starting with its first answer.

    It counts checks instead of seconds, so that a pause of the whole machine does not count against the process.
    """

    def __init__(self) -> None:
        self._has_answered = False
        self._misses = 0

    def record(self, *, answered: bool) -> bool:
        """Record whether a check was answered. Return whether the process hangs."""
        self._has_answered = self._has_answered or answered
        self._misses = 0 if answered or not self._has_answered else self._misses + 1
        return self._misses >= MOST_MISSES
