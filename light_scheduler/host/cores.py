"""The number of processor cores that this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_MEMBERSHIP, _ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_NEWER, _OLDER = "cpu.max", "cpu.cfs_quota_us"


def cores(files: Iterable[Path] | None = None) -> int:
    """Return the number of cores that this process may use, limited by the quotas of its control groups.

    `files` are the quota files of its groups; default: looked up.
    """
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = map(_share, quotas() if files is None else files)
    return max(1, min([mine, *(math.ceil(share) for share in shares if share is not None)]))


def quotas(membership: Path = _MEMBERSHIP, root: Path = _ROOT) -> list[Path]:
    """Return the files that may limit this process: those of its control group, such as a systemd unit, and of the
    parents.

    In a container, the process's own group appears as the top one, whatever its name is outside.
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
    """Yield the folders of a group, of all its parents, and of the top group."""
    path = PurePosixPath(group.lstrip("/"))
    if ".." not in path.parts:  # otherwise the group is outside of what is visible here
        for each in (path, *path.parents):
            yield top / each
    yield top


def _share(file: Path) -> float | None:
    """Return the limit of a control group in cores, from `<quota us> <period us>` or from one file for each; None: no
    limit."""
    try:
        quota = file.read_text(encoding="ascii").split()
        if file.name == _OLDER:
            quota += file.with_name("cpu.cfs_period_us").read_text(encoding="ascii").split()
        used, period = map(int, quota)
        return used / period if used > 0 and period > 0 else None
    except (OSError, ValueError):
        return None
