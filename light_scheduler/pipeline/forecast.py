"""The job `forecast`: counts what is due in each coming minute, from the changelogs, including series.

Firings are counted as in `expansion`, by arithmetic or by the engine. For events that cannot be predicted, it assumes:
runs of a fixed delay complete at once, acknowledgements come in time, and backoff series are never completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.model import TopicNames
from light_scheduler.wire import format_instant

from .changelog import decoded
from .expansion import MINUTE_MS, MOST_FIRINGS, Expansion
from .job import SILENT, Cluster, Progress
from .pages import GOOD, Section, page, plot, table, write_page
from .plot_steps import Steps
from .replacing import require_replaceable
from .schemas import arrow_schema
from .snapshots import snapshot, unmarked_if_lost
from .tables import write_table
from .topics import require_topic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TENANTS = 6
"""Number of tenants that the plot distinguishes."""

_ROWS_OF_A_FILE = 2_000_000
_OTHERS = "all others"

_LOAD = "what string, minute bigint, tenant string, topic string, number bigint"
_DUE, _SCHEDULES, _PAUSED, _CUT, _BYTES = "due", "schedules", "paused", "cut", "bytes"


@dataclass(frozen=True)
class ForecastOptions:
    """Options of a forecast of the next `ahead` ms. `inputs` are the commands topics.

    `table` is the folder of a Parquet table of minute, tenant, topic and firings. `page` is the file of the report.
    """

    cluster: Cluster
    names: TopicNames
    inputs: Sequence[str]
    ahead: int = 86_400_000
    table: str | None = None
    page: str | None = None
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True)
class Load:
    """The number of firings due in a minute, which is given by its start."""

    minute: str
    firings: int


@dataclass(frozen=True)
class ForecastSummary:
    """Firings due from `start` to `end`. Overdue ones count in the first minute.

    `paused` of the `schedules` do not fire until they are resumed. Of `cut` schedules, only the first firings are
    counted (`expansion.MOST_FIRINGS`). `minutes` contains only minutes in which something is due. `bytes` is the size
    of the schedules' records.
    """

    start: str
    end: str
    schedules: int
    paused: int
    cut: int
    firings: int
    peak: Load | None
    minutes: Sequence[Load]
    tenants: Mapping[str, int]
    topics: Mapping[str, int]
    bytes: int = field(default=0, compare=False)

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        lines = [
            f"{self.start} to {self.end}: {self.firings:,} firings of {self.schedules:,} schedules "
            f"({self.paused:,} paused)"
        ]
        if self.peak is not None:
            lines.append(f"The busiest minute begins at {self.peak.minute}: {self.peak.firings:,} firings")
        if self.cut:
            lines.append(f"{self.cut:,} schedules have more than the {MOST_FIRINGS:,} firings that are counted")
        return lines


def main(spark: SparkSession, options: ForecastOptions, progress: Progress = SILENT) -> ForecastSummary:
    """Forecast the load. Raises JobError if a changelog cannot be read."""
    require_replaceable(spark, options.table)
    start = options.clock.now() // MINUTE_MS * MINUTE_MS
    with unmarked_if_lost(spark, options.table, "parquet"), ExitStack() as kept:
        with progress.phase("Reading changelogs"):
            parts = [kept.enter_context(_load_of(spark, options, topic, start)) for topic in options.inputs]
        with progress.phase("Expanding schedules"):
            load = reduce(DataFrame.unionByName, parts).groupBy("what", "minute", "tenant", "topic")
            counted = load.agg(F.sum("number").alias("number")).persist(StorageLevel.DISK_ONLY)
            kept.callback(counted.unpersist)
            by_what = counted.groupBy("what").agg(F.sum("number").alias("number")).collect()
        with progress.phase("Reporting"):
            due = counted.where(F.col("what") == _DUE).drop("what").withColumnRenamed("number", "firings")
            if options.table is not None:
                _write_table(due, options.table)
            totals = {row["what"]: row["number"] for row in by_what}
            summary = _summary(due, totals, start, start + options.ahead)
            text = None if options.page is None else _page(due, summary)
    if options.page is not None and text is not None:
        write_page(options.page, text)
    return summary


@contextmanager
def _load_of(spark: SparkSession, options: ForecastOptions, commands_topic: str, start: int) -> Iterator[DataFrame]:
    """Yield the load from the schedules of a commands topic. Raises as `snapshot`."""
    changelog = options.names.changelog(commands_topic)
    require_topic(options.cluster, changelog)
    with snapshot(spark, options.cluster, changelog) as last:
        yield last.where("schedule is not null").mapInArrow(_expanding(start, start + options.ahead), _LOAD)


def _write_table(due: DataFrame, table: str) -> None:
    rows = due.select(F.timestamp_millis("minute").alias("minute"), "tenant", "topic", "firings")
    files = 1 + rows.count() // _ROWS_OF_A_FILE  # otherwise one for each task of a shuffle: 200 under spark-submit
    write_table(rows.coalesce(files), table, "parquet")


def _expanding(start: int, end: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def expand_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        expansion = Expansion(start, end)
        counts: Counter[str] = Counter()
        for batch in batches:
            records = zip(batch.column("schedule").to_pylist(), batch.column("progress").to_pylist(), strict=True)
            for schedule, progress in records:
                counts[_BYTES] += len(schedule) + len(progress or b"")
                entry = decoded(schedule, progress)
                expansion.add(entry)
                counts[_SCHEDULES] += 1
                counts[_PAUSED] += entry.progress.paused
        for firings in expansion.firings():
            yield _rows(_DUE, firings.minutes, firings.tenant, firings.topic, firings.numbers)
        for what, number in {**counts, _CUT: expansion.cut}.items():
            yield _rows(what, [None], None, None, [number])

    return expand_rows


def _rows(what: str, minutes: Any, tenant: str | None, topic: str | None, numbers: Any) -> pa.RecordBatch:
    columns = [
        pa.repeat(pa.scalar(what), len(numbers)),
        pa.array(minutes, pa.int64()),
        pa.repeat(pa.scalar(tenant, pa.string()), len(numbers)),
        pa.repeat(pa.scalar(topic, pa.string()), len(numbers)),
        pa.array(numbers, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(_LOAD))


def _summary(due: DataFrame, totals: Mapping[str, int], start: int, end: int) -> ForecastSummary:
    by_minute = due.groupBy("minute").agg(F.sum("firings").alias("firings")).orderBy("minute").collect()
    minutes = [Load(format_instant(row.minute), row.firings) for row in by_minute]
    return ForecastSummary(
        start=format_instant(start),
        end=format_instant(end),
        schedules=totals.get(_SCHEDULES, 0),
        paused=totals.get(_PAUSED, 0),
        cut=totals.get(_CUT, 0),
        firings=totals.get(_DUE, 0),
        peak=max(minutes, key=lambda load: load.firings, default=None),
        minutes=minutes,
        tenants=_by(due, "tenant"),
        topics=_by(due, "topic"),
        bytes=totals.get(_BYTES, 0),
    )


def _by(due: DataFrame, name: str) -> dict[str, int]:
    rows = (
        due.groupBy(name).agg(F.sum("firings").alias("firings")).orderBy(F.desc("firings"), name).limit(100).collect()
    )
    return {row[name]: row.firings for row in rows}


def _page(due: DataFrame, summary: ForecastSummary) -> str:
    title = "Load ahead"
    if not summary.firings:
        return page(title, summary.lines()[0], [])
    fullest = sorted(summary.minutes, key=lambda load: -load.firings)[:20]
    return page(
        title,
        " ".join(f"{line}." for line in summary.lines()),
        [
            Section("Firings due in each minute", _plot(due, summary)),
            Section(
                "The busiest minutes", table(("Minute", "Firings"), [(load.minute, load.firings) for load in fullest])
            ),
            Section("Tenants", table(("Tenant", "Firings"), list(summary.tenants.items()))),
            Section("Target topics", table(("Topic", "Firings"), list(summary.topics.items()))),
        ],
    )


def _plot(due: DataFrame, summary: ForecastSummary) -> str:
    names = list(summary.tenants)[:MOST_TENANTS]
    begin, end = _minute(summary.start), _minute(summary.end)
    steps = Steps.of(begin, end)
    series = {name: np.zeros(steps.number) for name in (*names, _OTHERS)}
    tenant = F.when(F.col("tenant").isin(names), F.col("tenant")).otherwise(_OTHERS).alias("tenant")
    step = F.floor((F.col("minute") / MINUTE_MS - steps.first) / steps.width).cast("int").alias("step")
    for row in due.groupBy(tenant, step).agg(F.sum("firings").alias("firings")).collect():
        series[row.tenant][row.step] += row.firings
    minutes = np.array(steps.minutes(begin, end))
    shown = {name: numbers / minutes for name, numbers in series.items() if numbers.any()}
    # A step is drawn up to the start of the next one.
    times: Any = np.datetime64(steps.first, "m") + steps.width * np.arange(steps.number + 1)

    def draw(axes: Axes) -> None:
        means = [np.append(numbers, 0) for numbers in shown.values()]
        if len(means) == 1:
            axes.fill_between(times, means[0], step="post", color=GOOD)
        else:
            axes.stackplot(times, *means, labels=list(shown), step="post")
            axes.legend(frameon=False, fontsize=9, ncols=4)
        mean = "" if steps.width == 1 else f" (mean of {steps.words()})"
        axes.set_ylabel(f"firings a minute{mean}", fontsize=9)
        axes.set_ylim(bottom=0)

    return plot(draw, "Firings due in each minute, by tenant", (10, 3.6))


def _minute(at: str) -> int:
    """Return the first minute of the epoch that starts at an instant or later."""
    ms = int(np.datetime64(at.removesuffix("Z"), "ms").astype(np.int64))
    return -(-ms // MINUTE_MS)
