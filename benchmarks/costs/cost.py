"""A job's cost, measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from light_scheduler.clock import SystemClock
from light_scheduler.pipeline.job import Cluster

from .watch import watched

PARTITIONS = 4
WORKER = "worker"
"""Stands for a job where a worker was measured: its processor time is its own, and its memory is not looked at."""
TARGET = "reminders"
PAYLOAD = b"x" * 200


@dataclass(frozen=True)
class Workspace:
    """Where jobs run: a session, an empty broker, and a folder for tables."""

    spark: SparkSession
    bootstrap_servers: str
    folder: Path

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap_servers)

    def table(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True)
class Cost:
    """What one run of a job took.

    Memory is the most that Spark and its Python workers had at once, processor time theirs (None: not known); `load` is
    the machine's (runnable tasks, last minute) when it ended, whoever they belong to, and `at` then (UTC epoch ms).
    """

    job: str
    rows: int
    seconds: float
    rows_per_s: float
    cpu_s: float | None
    peak_rss_bytes: int
    load: float
    at: int


def cost_of(job: str, rows: int, run: Callable[[], int]) -> Cost:
    """Run a job, which returns how many rows it did; it has to be all of them."""
    with watched() as watch:
        begun = time.monotonic()
        done = run()
        seconds = time.monotonic() - begun
    assert done == rows, f"{job} did {done} of {rows} rows"
    load = round(os.getloadavg()[0], 2)
    rate = round(rows / seconds)
    return Cost(job, rows, round(seconds, 3), rate, watch.cpu_s, watch.peak_rss_bytes, load, SystemClock().now())
