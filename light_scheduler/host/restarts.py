"""When to restart a process that has ended."""

from __future__ import annotations

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
STEADY_S = 60.0
"""A process that ran for this long may be restarted quickly."""


class Restarts:
    """The pauses before restarts of one process: they grow from 1 s to 30 s, and start over once it has run for a
    minute.

    `early_ends` counts its consecutive ends within that minute.
    """

    def __init__(self) -> None:
        self.early_ends = 0
        self._pauses = 0

    def pause_after(self, ran_s: float) -> float:
        """Return how long to wait (s) before restarting a process that ran for `ran_s` seconds."""
        is_early = ran_s < STEADY_S
        self.early_ends = self.early_ends + 1 if is_early else 0
        self._pauses = self._pauses + 1 if is_early else 1
        return min(FIRST_PAUSE_S * 2.0 ** (self._pauses - 1), LONGEST_PAUSE_S)


def how_it_ended(return_code: int) -> str:
    """Describe how a process ended. `return_code` is as in `subprocess`: the exit code, or minus the signal number."""
    return f"by signal {-return_code}" if return_code < 0 else f"with exit code {return_code}"
