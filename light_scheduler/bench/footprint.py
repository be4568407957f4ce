"""What a worker takes while it works, or has nothing to do: memory, disk, processor."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .cpu import cpu_seconds

_IDLE_S = 10.0


def rss_bytes(pid: int) -> int | None:
    """Return the memory that a process has at this moment; None if the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def disk_bytes(folder: Path) -> int:
    """Return the size of all files of a folder. Files that go away meanwhile count nothing."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def idle_cpu_percent(pid: int, seconds: float = _IDLE_S) -> float | None:
    """Watch a process for some seconds; return its share of one core, None if the system does not tell."""
    before, begun = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    after = cpu_seconds(pid)
    return None if before is None or after is None else 100 * (after - before) / (time.monotonic() - begun)
