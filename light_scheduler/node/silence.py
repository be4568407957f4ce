"""When a process that does not answer counts as hanging."""

from __future__ import annotations

ASK_EVERY_S = 5.0
ANSWER_S = 5.0
MOST_MISSES = 6
"""Ends a process that hangs within a minute: long after its partitions have gone to others (`session_timeout`)."""


class Silence:
    """Counts questions in a row that a process has not answered, from its first answer on.

    Questions and not seconds: when the whole machine stood still, the process is asked anew.
    """

    def __init__(self) -> None:
        self._has_answered = False
        self._misses = 0

    def record(self, *, answered: bool) -> bool:
        """Record whether a question was answered; return whether the process hangs."""
        self._has_answered = self._has_answered or answered
        self._misses = 0 if answered or not self._has_answered else self._misses + 1
        return self._misses >= MOST_MISSES
