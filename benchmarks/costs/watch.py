"""Spark's use of the machine, seen from outside: memory and processor time of its JVM and all descendants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

LOOK_EVERY_S = 0.5


@dataclass
class Watch:
    """The maximum resident memory of all looks, and the processor time used, within a block."""

    peak_rss_bytes: int = 0
    cpu_s: float = 0.0


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch Spark within a block. The yielded object is complete when the block ends.

    Each process is counted separately, up to the last look at it, since the time of ended processes may not be added
    anywhere.
    """
    watch, ended = Watch(), threading.Event()
    before = {process: _used(process) for process in _spark_processes()}
    used: dict[psutil.Process, float] = {}

    def look() -> None:
        there = list(_spark_processes())
        used.update({process: max(_used(process), used.get(process, 0.0)) for process in there})
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
        watch.cpu_s = round(sum(seconds - before.get(process, 0.0) for process, seconds in used.items()), 2)


def _spark_processes() -> Iterator[psutil.Process]:
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if any("org.apache.spark" in word for word in child.cmdline()):
                yield from (child, *child.children(recursive=True))


def _used(process: psutil.Process) -> float:
    """Return user and system time (s); 0 if the process has ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0
