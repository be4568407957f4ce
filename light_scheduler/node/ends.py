"""How a node reacts when a worker process ends: it restarts the process, or ends."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple

from light_scheduler.host.restarts import STEADY_S, Restarts, how_it_ended

from .job import CANNOT_RUN, WRONG_SETTINGS

MOST_EARLY_ENDS = 5
"""Number of early ends in a row after which a process is not restarted any more."""


class Again(NamedTuple):
    """Restart the process after a pause, in seconds."""

    pause_s: float


class GiveUp(NamedTuple):
    """End the node."""

    reason: str


def what_follows(return_code: int, ran_s: float, restarts: Restarts) -> Again | GiveUp:
    """Decide what to do about a process that has ended by itself after `ran_s` seconds."""
    if return_code in (WRONG_SETTINGS, CANNOT_RUN):
        return GiveUp("it would end the same way again; the error is above")
    pause_s = restarts.pause_after(ran_s)
    if restarts.early_ends < MOST_EARLY_ENDS:
        return Again(pause_s)
    return GiveUp(
        f"it ended {how_it_ended(return_code)}, for the {MOST_EARLY_ENDS}th time in a row within {STEADY_S:.0f} s of "
        "its start"
    )


def exit_code(return_codes: Sequence[int | None], *, was_asked: bool) -> int:
    """Return the exit code of a node: 0 if it was asked to end and all processes ended cleanly, otherwise 1.

    If wrong settings caused the end, it is `WRONG_SETTINGS`.

    `return_codes` has None for a process that is about to start. A process that was asked before it could handle
    signals ended by SIGTERM.
    """
    if not was_asked and WRONG_SETTINGS in return_codes:
        return WRONG_SETTINGS
    in_order = all(code in (None, 0, -signal.SIGTERM) for code in return_codes)
    return 0 if was_asked and in_order else 1
