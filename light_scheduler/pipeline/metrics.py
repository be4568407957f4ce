"""Metrics of a job's run: a row of a table, and a text file for the textfile collector of Prometheus' node exporter.

A row has the columns of `COLUMNS`. The file has gauges about the last run, with the labels `command` and `app_id`. It
is replaced atomically, so a scrape never sees half of it. The instant of the last success survives failed runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.parser import text_string_to_metric_families
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from light_scheduler.clock import SystemClock
from light_scheduler.errors import JobError

from .job import Summary, parallelism
from .tables import require_place, write_table

COLUMNS = (
    "command string, app_id string, started_at timestamp, seconds double, succeeded boolean, `rows` bigint, "
    "bytes bigint, cores int, core_seconds_per_million_rows double"
)
"""The schema of a table of metrics, in Spark's syntax. Unknown values are null."""

PREFIX = "light_scheduler_pipeline_last_"
_SUCCESS = f"{PREFIX}success_timestamp_seconds"
_LABELS = ("command", "app_id")

S = TypeVar("S", bound=Summary)


class Volume(NamedTuple):
    """The amount of data that a job has processed; `bytes` is None if it does not count them."""

    rows: int
    bytes: int | None


class JobName(NamedTuple):
    """The name of the command, and the application."""

    command: str
    app_id: str


@dataclass(frozen=True)
class Places:
    """Destinations of metrics: a table to which a row is added, in a format of Spark, and a file that is replaced."""

    table: str | None = None
    format: str = "parquet"
    file: Path | None = None


@dataclass(frozen=True)
class JobRun:
    """A run of a job. `started_at` is UTC epoch ms; `cores` is the number of tasks that run at once, None if unknown.

    `volume` is None if the job failed.
    """

    name: JobName
    started_at: int
    seconds: float
    succeeded: bool
    cores: int | None
    volume: Volume | None

    @property
    def core_seconds_per_million_rows(self) -> float | None:
        """The cost of a million rows; None if unknown."""
        if self.volume is None or not self.volume.rows or self.cores is None:
            return None
        return self.seconds * self.cores * 1_000_000 / self.volume.rows


@dataclass(frozen=True)
class Measured(Generic[S]):
    """The summary of a completed job, and the error if its metrics could not be written."""

    summary: S
    failure: JobError | None = None


def measured(
    spark: SparkSession, name: JobName, places: Places, job: Callable[[], S], volume_of: Callable[[S], Volume]
) -> Measured[S]:
    """Run a job and write its metrics, even if it fails.

    Raises the job's errors, and JobError before it begins if the destinations of metrics are not usable. If the metrics
    cannot be written afterwards, the summary is still returned: some jobs report their findings only once.
    """
    require_place(spark, places.table)
    started_at, begun = SystemClock().now(), time.monotonic()

    def run(summary: S | None) -> JobRun:
        seconds = time.monotonic() - begun
        volume = None if summary is None else volume_of(summary)
        succeeded = summary is not None and not summary.failed
        return JobRun(name, started_at, seconds, succeeded, parallelism(spark), volume)

    try:
        summary = job()
    except BaseException:
        with suppress(Exception):  # the job's failure matters more
            write_metrics(spark, run(None), places)
        raise
    try:
        write_metrics(spark, run(summary), places)
    except (OSError, PySparkException, Py4JError) as error:
        why = str(error).strip().split("\n", 1)[0]
        return Measured(summary, JobError(f"the job is done, but its metrics cannot be written: {why}"))
    return Measured(summary)


def write_metrics(spark: SparkSession, run: JobRun, places: Places) -> None:
    """Write the metrics of a run to their destinations. Raises OSError, or Spark's errors."""
    if places.file is not None:
        write_file(places.file, run)
    if places.table is not None:
        write_table(spark.createDataFrame([_row(run)], COLUMNS).coalesce(1), places.table, places.format, "append")


def write_file(path: Path, run: JobRun) -> None:
    """Replace the file of metrics of a job. Raises OSError."""
    succeeded_at = run.started_at / 1_000 + run.seconds if run.succeeded else _last_success(path, run.name)
    volume = run.volume or Volume(0, None)
    values = {
        "run_timestamp_seconds": ("When the last run of the job began.", run.started_at / 1_000),
        "success_timestamp_seconds": ("When a run of the job last ended with exit code 0.", succeeded_at),
        "run_success": ("Whether the last run of the job ended with exit code 0.", float(run.succeeded)),
        "run_duration_seconds": ("How long the last run of the job took.", run.seconds),
        "run_rows": ("Rows of the last run of the job.", None if run.volume is None else volume.rows),
        "run_bytes": ("Bytes of the last run of the job.", volume.bytes),
        "run_core_seconds_per_million_rows": (
            "Seconds times cores for a million rows in the last run of the job.",
            run.core_seconds_per_million_rows,
        ),
    }
    registry = CollectorRegistry()
    for suffix, (help, value) in values.items():
        if value is not None:
            Gauge(PREFIX + suffix, help, _LABELS, registry=registry).labels(*run.name).set(value)
    write_to_textfile(str(path), registry)


def _last_success(path: Path, name: JobName) -> float | None:
    """Return when the job last succeeded, from its file; None if the file does not say or is damaged. Raises
    OSError."""
    if not path.is_file():
        return None
    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except ValueError:  # damaged or not UTF-8: a successful run replaces it without reading it
        return None
    labels = dict(zip(_LABELS, name, strict=True))
    samples = (sample for family in families for sample in family.samples)
    return next((each.value for each in samples if each.name == _SUCCESS and each.labels == labels), None)


def _row(run: JobRun) -> tuple[object, ...]:
    rows, size = run.volume or (None, None)
    started_at = datetime.fromtimestamp(run.started_at / 1_000, UTC)
    cost = run.core_seconds_per_million_rows
    return (*run.name, started_at, run.seconds, run.succeeded, rows, size, run.cores, cost)
