"""Processes as the system sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psutil


def process_runs(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not collected by its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def rebuilders(parent: int) -> Iterator[int]:
    """Yield the processes that rebuild tables for a worker."""
    for child in psutil.Process(parent).children():
        with suppress(psutil.NoSuchProcess):
            if any("rebuild_process" in word for word in child.cmdline()):
                yield child.pid
