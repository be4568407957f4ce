"""The memory of a process and its descendants."""

from __future__ import annotations

import time

import psutil

from light_scheduler.bench.footprint import rss_bytes

_INTERVAL_S = 0.25
_STEADY_FOR = 6
_STEADY_WITHIN = 0.01
_PATIENCE_S = 20.0


def settled_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants, once it changes by at most 1 % in 1.5 s.

    Memory that still changes after 20 s is returned as it is.
    """
    looks: list[int] = []
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        looks.append(family_bytes(pid))
        last = looks[-_STEADY_FOR:]
        if len(last) == _STEADY_FOR and max(last) - min(last) <= _STEADY_WITHIN * max(last):
            break
        time.sleep(_INTERVAL_S)
    return looks[-1]


def family_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants. Shared pages are counted in each process."""
    return sum(rss_bytes(member) or 0 for member in family(pid))


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return [pid]
