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
"""Used as the job when a worker was measured: processor time is the worker's, and memory is not measured."""
TARGET = "reminders"
PAYLOAD = b"x" * 200


@dataclass(frozen=True)
class Workspace:
    """The environment of jobs: a session, an empty broker, and a folder for tables."""

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
    """The cost of one run of a job.

    Memory is the maximum resident memory of Spark and its Python workers at once, processor time is theirs (None:
    unknown). `load` is the machine's total load (runnable tasks, last minute) at the end, and `at` the time of the end
    (UTC epoch ms).
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
    """Run a job, which returns the number of rows that it processed. It must equal `rows`."""
    with watched() as watch:
        begun = time.monotonic()
        done = run()
        seconds = time.monotonic() - begun
    assert done == rows, f"{job} did {done} of {rows} rows"
    load = round(os.getloadavg()[0], 2)
    rate = round(rows / seconds)
    return Cost(job, rows, round(seconds, 3), rate, watch.cpu_s, watch.peak_rss_bytes, load, SystemClock().now())
