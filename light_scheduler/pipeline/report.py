"""The job `report`: how punctual deliveries were, by hour, tenant and partition, according to the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.wire import format_instant

from .archive import read_archive
from .job import SILENT, Cluster, Progress
from .lag import LAG_MS
from .pages import BAD, GOOD, Section, page, paragraph, plot, table, write_page
from .percentiles import LATENESS_LEVELS
from .topics import read_topics, require_topic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 30
"""Number of tenants, partitions or topics that are listed: those with the most firings."""

_EVENT = (
    "event string, tenant string, due bigint, at bigint, attempt int, target_topic string, partition int, count bigint"
)
_HOUR_MS = 3_600_000
_PRECISION = 10_000


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report on firings from `start` to `end` (UTC epoch ms; None: no bound).

    With `archive`, the history is read from that table instead of the topic. `page` is the file of the report.
    """

    cluster: Cluster
    names: TopicNames
    start: int = 0
    end: int | None = None
    archive: str | None = None
    page: str | None = None


@dataclass(frozen=True)
class Punctuality:
    """Firings of the hour, tenant, partition or topic `name`, and their lateness in ms."""

    name: str
    firings: int
    lateness_ms: Mapping[str, int]


@dataclass(frozen=True)
class ReportSummary:
    """Firings delivered for the first time (later attempts only count as events), and all events of the history by
    type.

    Lateness is the time from a firing's due time to the transaction that delivered it, whatever the reason. `hours` are
    named by their first instant; `tenants`, `partitions` (of commands topics) and `topics` are those with the most
    firings. `bytes` is the size of the events.
    """

    firings: int
    lateness_ms: Mapping[str, int]
    events: Mapping[str, int]
    hours: Sequence[Punctuality]
    tenants: Sequence[Punctuality]
    partitions: Sequence[Punctuality]
    topics: Sequence[Punctuality]
    bytes: int = field(default=0, compare=False)

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        if not self.firings:
            return ["Nothing was delivered."]
        levels = ", ".join(f"{name} {value:,}" for name, value in self.lateness_ms.items())
        worst = max(self.hours, key=lambda hour: hour.lateness_ms["p99"])
        events = ", ".join(f"{number:,} {event}" for event, number in self.events.items())
        return [
            f"{self.firings:,} firings. Lateness in ms: {levels}.",
            f"The hour with the highest p99 began at {worst.name}: {worst.lateness_ms['p99']:,} ms.",
            f"Events: {events}.",
        ]


def main(spark: SparkSession, options: ReportOptions, progress: Progress = SILENT) -> ReportSummary:
    """Report on the history. Raises JobError if it cannot be read."""
    events = _events(spark, options).persist(StorageLevel.DISK_ONLY)
    try:
        with progress.phase("Reading history"):
            counted = _counted(events).collect()
            counts = {row.event: row.number for row in counted}
        with progress.phase("Reporting"):
            fired = events.where("event = 'fired' and attempt = 1").withColumn("late", F.col("at") - F.col("due"))
            summary = replace(_summary(fired, counts), bytes=sum(row.bytes for row in counted))
            if options.page is not None:
                write_page(options.page, _page(fired, summary))
            return summary
    finally:
        events.unpersist()


def _events(spark: SparkSession, options: ReportOptions) -> DataFrame:
    topic = options.names.history
    if options.end is not None and options.start > options.end:
        raise JobError("the report would begin after it ends, and be empty: give an earlier --from, or a later --to")
    if options.archive is not None:
        if read_archive(spark, options.archive).where(F.col("topic") == topic).isEmpty():
            app_id = options.names.app_id
            raise JobError(f"{options.archive} has no records of {topic}: is {app_id} the id of the application?")
        days = max(0, options.start - LAG_MS), None if options.end is None else options.end + LAG_MS
        records = read_archive(spark, options.archive, *days).where(F.col("topic") == topic)
    else:
        require_topic(options.cluster, topic)
        bounds = {"startingTimestamp": options.start} if options.start else {}
        if options.end is not None:
            bounds["endingTimestamp"] = options.end + LAG_MS
        client = options.cluster.client_options()
        records = read_topics(spark, options.cluster.bootstrap_servers, [topic], **client, **bounds)
    event = F.from_json(F.col("value").cast("string"), _EVENT)
    events = records.select(event.alias("event"), F.octet_length("value").alias("bytes"))
    events = events.select("event.*", "bytes").where(F.col("at") >= options.start)
    events = events.withColumn("hour", F.floor(F.col("at") / _HOUR_MS) * _HOUR_MS)
    return events if options.end is None else events.where(F.col("at") <= options.end)


def _counted(events: DataFrame) -> DataFrame:
    number = F.sum(F.coalesce("count", F.lit(1))).alias("number")
    size = F.sum("bytes").alias("bytes")
    return events.groupBy("event").agg(number, size).orderBy(F.desc("number"), "event")


def _lateness() -> Column:
    levels = F.array(*(F.lit(level) for level in LATENESS_LEVELS.values()))
    return F.percentile_approx("late", levels, _PRECISION).alias("levels")


def _summary(fired: DataFrame, counts: dict[str, int]) -> ReportSummary:
    total = fired.agg(F.count("*").alias("firings"), _lateness()).first()
    assert total is not None, "an aggregate has a row"
    hours = sorted(fired.groupBy("hour").agg(F.count("*").alias("firings"), _lateness()).collect())
    return ReportSummary(
        firings=total.firings,
        lateness_ms=_by_level(total.levels),
        events=counts,
        hours=[Punctuality(format_instant(int(row.hour)), row.firings, _by_level(row.levels)) for row in hours],
        tenants=_by(fired, "tenant"),
        partitions=_by(fired, "partition"),
        topics=_by(fired, "target_topic"),
    )


def _by(fired: DataFrame, name: str) -> list[Punctuality]:
    grouped = fired.groupBy(name).agg(F.count("*").alias("firings"), _lateness())
    rows = grouped.orderBy(F.desc("firings"), name).limit(MOST_ROWS).collect()
    return [Punctuality(str(row[name]), row.firings, _by_level(row.levels)) for row in rows]


def _by_level(levels: Sequence[int] | None) -> dict[str, int]:
    return {} if levels is None else dict(zip(LATENESS_LEVELS, levels, strict=True))


# -- the page ---------------------------------------------------------------------------------------------------------


def _page(fired: DataFrame, summary: ReportSummary) -> str:
    title = "Punctuality of deliveries"
    if not summary.firings:
        return page(title, "Nothing was delivered.", [])
    sections = [
        Section("Lateness by hour", _over_hours(summary)),
        Section("Lateness by hour and tenant (p99)", _heat_map(fired, summary, "tenant", summary.tenants)),
        Section("Lateness by hour and partition (p99)", _heat_map(fired, summary, "partition", summary.partitions)),
        Section("Tenants", _listed(summary.tenants)),
        Section("Target topics", _listed(summary.topics)),
        Section("Events", table(("Event", "Number"), list(summary.events.items()))),
    ]
    return page(title, summary.lines()[0], sections)


def _over_hours(summary: ReportSummary) -> str:
    times: Any = _instants(summary)

    def draw_firings(axes: Axes) -> None:
        axes.bar(times, [hour.firings for hour in summary.hours], width=1 / 24, align="edge", color=GOOD)
        axes.set_ylabel("firings an hour", fontsize=9)

    def draw_lateness(axes: Axes) -> None:
        for level, colour, style in (("p50", GOOD, "-"), ("p99", BAD, "-"), ("max", BAD, ":")):
            values = [max(1, hour.lateness_ms[level]) for hour in summary.hours]
            axes.plot(times, values, style, color=colour, marker=".", label=level)
        axes.set_yscale("log")
        axes.set_ylabel("ms late", fontsize=9)
        axes.legend(frameon=False, fontsize=9)

    return plot(draw_lateness, "Lateness by hour: p50, p99 and max") + plot(draw_firings, "Firings by hour")


def _instants(summary: ReportSummary) -> list[Any]:
    return [np.datetime64(hour.name.removesuffix("Z")) for hour in summary.hours]


def _heat_map(fired: DataFrame, summary: ReportSummary, column: str, rows: Sequence[Punctuality]) -> str:
    names = [row.name for row in rows]
    hours = [hour.name for hour in summary.hours]
    of_these = fired.withColumn("name", F.col(column).cast("string")).where(F.col("name").isin(names))
    level = F.percentile_approx("late", F.lit(LATENESS_LEVELS["p99"]), F.lit(_PRECISION)).alias("late")
    cells = np.full((len(names), len(hours)), np.nan)
    for row in of_these.groupBy("name", "hour").agg(level).collect():
        cells[names.index(row.name), hours.index(format_instant(int(row.hour)))] = max(1, row.late)

    def draw(axes: Axes) -> None:
        highest = max(10.0, float(np.nanmax(cells)))
        looks: dict[str, Any] = {"cmap": "YlOrRd", "norm": "log", "interpolation": "nearest"}
        image = axes.imshow(cells, aspect="auto", vmin=1, vmax=highest, **looks)
        axes.grid(visible=False)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        step = max(1, len(hours) // 12)
        axes.set_xticks(
            range(0, len(hours), step), [hour[5:13].replace("T", " ") for hour in hours[::step]], fontsize=8
        )
        bar = axes.figure.colorbar(image, ax=axes)
        bar.set_label("ms", fontsize=9)

    return plot(draw, f"p99 of lateness by hour and {column}", (10, 1.4 + 0.28 * len(names)))


def _listed(rows: Sequence[Punctuality]) -> str:
    more = paragraph(f"The {MOST_ROWS} with the most firings.") if len(rows) == MOST_ROWS else ""
    head = ("Name", "Firings", *(f"{level}, ms" for level in LATENESS_LEVELS))
    return more + table(head, [(row.name, row.firings, *row.lateness_ms.values()) for row in rows])
