"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_MEMBERSHIP, _ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_NEWER, _OLDER = "cpu.max", "cpu.cfs_quota_us"


def cores(files: Iterable[Path] | None = None) -> int:
    """Return the number of cores that this process may run on; fewer if a control group that it is in has less time.

    `files` are those of its groups; by default, they are looked up.
    """
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = map(_share, quotas() if files is None else files)
    return max(1, min([mine, *(math.ceil(share) for share in shares if share is not None)]))


def quotas(membership: Path = _MEMBERSHIP, root: Path = _ROOT) -> list[Path]:
    """Return the files that may limit this process: of its control group, as a unit of systemd is one, and those above.

    In a container, its own group is the top one, under whatever name it has outside.
    """
    files = [root / _NEWER]
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return files
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":  # version 2
            files += [folder / _NEWER for folder in _groups(root, group)]
        elif "cpu" in controllers.split(","):
            files += [folder / _OLDER for folder in _groups(root / controllers, group)]
    return files


def _groups(top: Path, group: str) -> Iterator[Path]:
    """Yield the folders of a group, of all above it, and of the top one."""
    path = PurePosixPath(group.lstrip("/"))
    if ".." not in path.parts:  # else it is outside of what is to be seen here
        for each in (path, *path.parents):
            yield top / each
    yield top


def _share(file: Path) -> float | None:
    """Return the cores' worth of time that a control group has, from `<quota us> <period us>`, or one file for each;
    None: no limit."""
    try:
        quota = file.read_text(encoding="ascii").split()
        if file.name == _OLDER:
            quota += file.with_name("cpu.cfs_period_us").read_text(encoding="ascii").split()
        used, period = map(int, quota)
        return used / period if used > 0 and period > 0 else None
    except (OSError, ValueError):
        return None
