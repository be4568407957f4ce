"""From findings to what an audit says."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.pages import write_page
from light_scheduler.pipeline.percentiles import percentiles
from light_scheduler.pipeline.tables import write_table

from .faults import FaultKind
from .judging import COUNT, FAULT, HANDLED, LATENESS, MINUTE
from .options import AuditOptions
from .summary import MOST_TOLD, AuditSummary, Figures, FoundFault, audit_page
from .verdict import Bounds

MOST_LISTED = 1_000
"""Faults of each kind that a page lists."""

_BARS = 200
_MINUTE_MS = 60_000
_KINDS = [kind.value for kind in FaultKind]


def without_waiting(found: DataFrame) -> tuple[DataFrame, int]:
    """Return the faults, and how many commands have had no effect because no worker has come to them yet."""
    of_lane = ["topic", "partition"]
    handled = found.where(F.col("what") == HANDLED).groupBy(*of_lane).agg(F.max("offset").alias("handled"))
    faults = found.where(F.col("what") == FAULT).join(F.broadcast(handled), of_lane, "left")
    is_waiting = (F.col("name") == FaultKind.IGNORED.value) & (F.col("offset") > F.coalesce("handled", F.lit(-1)))
    return faults.where(~is_waiting), faults.where(is_waiting).count()


def reported(
    options: AuditOptions, bounds: Bounds, found: DataFrame, faults: DataFrame, waiting: int, expanded: int
) -> AuditSummary:
    if options.faults is not None:
        write_table(_as_told(faults), options.faults, "parquet")
    counted = found.where(F.col("what") == COUNT).groupBy("name").agg(F.sum("number").alias("number")).collect()
    counts = {row.name: row.number for row in counted}
    by_kind = {row.name: row["count"] for row in faults.groupBy("name").count().collect()}
    in_order = Window.partitionBy("name").orderBy("at", "tenant", "id", "due")
    first = faults.withColumn("place", F.row_number().over(in_order)).where(F.col("place") <= MOST_LISTED)
    listed = [FoundFault(**row.asDict()) for row in _as_told(first).collect()]
    listed.sort(key=lambda fault: (_KINDS.index(fault.kind), fault.at, fault.tenant, fault.id))
    lateness = _numbers(found, LATENESS)
    summary = AuditSummary(
        start=max(bounds.start, bounds.counted),
        end=bounds.end,
        schedules=counts.get("schedules", 0),
        firings=counts.get("delivered", 0),
        unjudged=counts.get("unjudged", 0),
        ambiguous=counts.get("ambiguous", 0),
        moved=counts.get("moved", 0),
        unreadable=counts.get("unreadable", 0),
        waiting=waiting,
        expanded_by_spark=expanded,
        lateness_ms=percentiles(lateness),
        fault_counts={kind: by_kind[kind] for kind in _KINDS if kind in by_kind},
        faults=listed[:MOST_TOLD],
    )
    if options.page is not None:
        minutes = (
            found.where(F.col("what") == MINUTE).agg(F.min("at").alias("first"), F.max("at").alias("last")).first()
        )
        span = 0 if minutes is None or minutes["first"] is None else minutes["last"] - minutes["first"]
        width = (span // _BARS // _MINUTE_MS + 1) * _MINUTE_MS
        figures = Figures(lateness, _numbers(found, MINUTE, width), _numbers(faults, FAULT, width), width)
        write_page(options.page, audit_page(summary, figures, listed))
    return summary


def _numbers(found: DataFrame, what: str, width: int = 1) -> list[tuple[int, int]]:
    """Return how many there are of something by `at`, in steps of a width (ms)."""
    of_kind = found.where(F.col("what") == what).groupBy((F.floor(F.col("at") / width) * width).alias("at"))
    return sorted((int(row.at), int(row.number)) for row in of_kind.agg(F.sum("number").alias("number")).collect())


def _as_told(faults: DataFrame) -> DataFrame:
    return faults.withColumnRenamed("name", "kind").select(*FoundFault.__dataclass_fields__)
