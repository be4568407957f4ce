"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores(quota: Path = _QUOTA) -> int:
    """Return the number of cores that this process may run on; fewer if its container has a share of them only."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _share(quota)
    return mine if share is None else max(1, min(mine, math.ceil(share)))


def _share(quota: Path) -> float | None:
    """Return the cores' worth of time that a control group (v2) has: `<quota us> <period us>`; None: no limit."""
    try:
        used, period = quota.read_text(encoding="ascii").split()
        return int(used) / int(period)
    except (OSError, ValueError):
        return None
