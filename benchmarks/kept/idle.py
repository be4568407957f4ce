"""Waits until the machine is idle."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from light_scheduler.bench.machine import load
from light_scheduler.devkit.waiting import wait_until

IDLE_LOAD = 0.2
AT_MOST_S = 300.0
_LOOK_S = 5.0


def wait_until_idle(load: Callable[[], float] = lambda: load(_LOOK_S), at_most_s: float = AT_MOST_S) -> None:
    """Return when the average load of a few seconds is below `IDLE_LOAD`, or after `at_most_s` seconds. Report longer
    waits.

    After the last measurement, files may still be written, or processes may still be ending.
    """
    if (before := load()) < IDLE_LOAD:
        return
    _say(f"waiting until the load is below {IDLE_LOAD}, at most {at_most_s:g} s: it is {before:.1f}")
    begun = time.monotonic()
    try:
        wait_until(lambda: load() < IDLE_LOAD, timeout=at_most_s, what="load", interval=0)
    except TimeoutError:
        _say(f"the machine is still busy after {at_most_s:g} s: the load is {load():.1f}")
    else:
        _say(f"waited for {time.monotonic() - begun:.0f} s")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
