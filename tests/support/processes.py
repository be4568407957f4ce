"""Processes as the system sees them."""

from __future__ import annotations

import psutil


def process_runs(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not collected by its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
