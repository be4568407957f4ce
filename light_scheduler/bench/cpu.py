"""A process's own processor time, where the system tells it."""

from __future__ import annotations

import os
from pathlib import Path

# Fields of /proc/<pid>/stat (proc(5), where they are 14 and 15) counted from the one after the name.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


def cpu_seconds(pid: int) -> float | None:
    """Return the user and system time (s) of all threads of a process; None if it is gone or the system is not Linux.

    It is exact to a tick of the kernel's accounting, 10 ms.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return ticks(stat) / os.sysconf("SC_CLK_TCK")


def ticks(stat: str) -> int:
    """Return user plus system time in ticks from the text of /proc/<pid>/stat; a process may be named anything."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
