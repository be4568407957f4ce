"""What Spark takes of the machine, seen from outside: memory and processor time of its JVM and all that it started."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.5
_PROCESSES = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Watch:
    """The most memory that was resident at one look, and the processor time that was used, within a block."""

    peak_rss_bytes: int = 0
    cpu_s: float = 0.0


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch Spark within a block; what is yielded is complete when it ends.

    Each process counts for itself, up to the last look at it: what has ended is in nobody's account for sure.
    """
    watch, ended = Watch(), threading.Event()
    before = {pid: _used(pid) for pid in _spark_processes()}
    used: dict[int, float] = {}

    def look() -> None:
        there = list(_spark_processes())
        used.update({pid: max(_used(pid), used.get(pid, 0.0)) for pid in there})
        watch.peak_rss_bytes = max(watch.peak_rss_bytes, sum(map(_resident, there)))

    def look_again() -> None:
        while not ended.wait(LOOK_EVERY_S):
            look()

    watcher = threading.Thread(target=look_again, daemon=True)
    watcher.start()
    try:
        yield watch
    finally:
        ended.set()
        watcher.join()
        look()
        watch.cpu_s = round(sum(seconds - before.get(pid, 0.0) for pid, seconds in used.items()), 2)


def _spark_processes() -> Iterator[int]:
    parents = {}
    for place in _PROCESSES.iterdir():
        if place.name.isdigit() and (stat := _stat(int(place.name))):
            parents[int(place.name)] = int(stat[1])
    mine = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_spark(pid)}
    while mine:
        yield from mine
        mine = {pid for pid, parent in parents.items() if parent in mine}


def _is_spark(pid: int) -> bool:
    try:
        return b"org.apache.spark" in (_PROCESSES / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """Return the fields of `stat` behind the name; none if the process has ended."""
    try:
        return (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _used(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / _TICKS


def _resident(pid: int) -> int:
    try:
        return int((_PROCESSES / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
