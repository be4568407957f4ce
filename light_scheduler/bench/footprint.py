"""Resources used by a process: memory, disk, processor time."""

from __future__ import annotations

import time
from pathlib import Path

_IDLE_S = 10.0


def rss_bytes(pid: int) -> int | None:
    """Return the current memory of a process; None if it is gone."""
    import psutil

    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None


def cpu_seconds(pid: int) -> float | None:
    """Return the user and system time (s) of all threads of a process; None if it is gone.

    On Linux the resolution is a tick of the kernel's accounting, 10 ms.
    """
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return times.user + times.system


def disk_bytes(folder: Path) -> int:
    """Return the total size of all files in a folder. Ignores files that disappear meanwhile."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def idle_cpu_percent(pid: int, seconds: float = _IDLE_S) -> float | None:
    """Observe a process for some seconds. Return its share of one core; None if it is gone."""
    before, begun = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    after = cpu_seconds(pid)
    return None if before is None or after is None else 100 * (after - before) / (time.monotonic() - begun)
