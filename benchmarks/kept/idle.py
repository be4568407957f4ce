"""Waits until nothing else uses the machine, as far as its load says."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from light_scheduler.devkit.waiting import wait_until

IDLE_LOAD = 0.5
AT_MOST_S = 300.0
_INTERVAL_S = 5.0


def load() -> float:
    """Return the average load of the last minute: tasks that run, or wait for a processor or the disk."""
    return os.getloadavg()[0]


def wait_until_idle(
    load: Callable[[], float] = load, at_most_s: float = AT_MOST_S, interval_s: float = _INTERVAL_S
) -> None:
    """Return when the load is below `IDLE_LOAD`, or after `at_most_s` seconds; say what is waited for, and if in vain.

    The load of a minute holds what ran before, in a series the measurement before this one.
    """
    if (before := load()) < IDLE_LOAD:
        return
    _say(f"waiting until the load is below {IDLE_LOAD}, at most {at_most_s:g} s: it is {before:.1f}")
    begun = time.monotonic()
    try:
        wait_until(lambda: load() < IDLE_LOAD, timeout=at_most_s, what="load", interval=interval_s)
    except TimeoutError:
        _say(f"the machine is still busy after {at_most_s:g} s: the load is {load():.1f}")
    else:
        _say(f"waited for {time.monotonic() - begun:.0f} s")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
