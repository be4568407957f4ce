"""From findings to what an audit says."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.pages import write_page
from light_scheduler.pipeline.percentiles import percentiles
from light_scheduler.pipeline.tables import write_table

from .bounds import Bounds
from .faults import FaultKind
from .handled import Queue
from .options import AuditOptions
from .summary import MOST_SHOWN, AuditSummary, Figures, FoundFault, audit_page
from .verdict_table import COUNT, FAULT, HANDLED, LATENESS, MINUTE

MOST_LISTED = 1_000
"""Faults of each kind that a page lists."""

_BARS = 200
_MINUTE_MS = 60_000
_KINDS = [kind.value for kind in FaultKind]


def without_waiting(found: DataFrame) -> tuple[DataFrame, int]:
    """Return the faults, and how many commands have had no effect because they wait: for a worker, or for a quota."""
    faults = found.where(F.col("what") == FAULT)
    if faults.isEmpty():  # as most audits find: no step of what follows is planned then
        return faults, 0
    handled = found.where(F.col("what") == HANDLED).groupBy(*Queue._fields).agg(F.max("offset").alias("handled"))
    faults = faults.join(F.broadcast(handled), list(Queue._fields), "left")
    is_waiting = (F.col("name") == FaultKind.IGNORED.value) & (F.col("offset") > F.coalesce("handled", F.lit(-1)))
    return faults.where(~is_waiting), faults.where(is_waiting).count()


def reported(
    options: AuditOptions, bounds: Bounds, found: DataFrame, faults: DataFrame, waiting: int, expanded: int
) -> AuditSummary:
    if options.faults is not None:
        write_table(_as_told(faults), options.faults, "parquet")
    tallies = _tallies(found)
    by_kind = {row.name: row["count"] for row in faults.groupBy("name").count().collect()}
    listed = _listed(faults) if by_kind else []
    summary = AuditSummary(
        start=max(bounds.start, bounds.counted),
        end=bounds.end,
        schedules=tallies.counts["schedules"],
        firings=tallies.counts["delivered"],
        unjudged=tallies.counts["unjudged"],
        ambiguous=tallies.counts["ambiguous"],
        moved=tallies.counts["moved"],
        unread=tallies.counts["unread"],
        unclaimed=tallies.counts["unclaimed"],
        untraced=tallies.counts["untraced"],
        unreadable=tallies.counts["unreadable"],
        waiting=waiting,
        expanded_by_spark=expanded,
        lateness_ms=percentiles(tallies.lateness),
        fault_counts={kind: by_kind[kind] for kind in _KINDS if kind in by_kind},
        faults=listed[:MOST_SHOWN],
    )
    if options.page is not None:
        width = (tallies.span // _BARS // _MINUTE_MS + 1) * _MINUTE_MS
        failed = _numbers(faults, FAULT, width) if by_kind else []
        figures = Figures(tallies.lateness, _numbers(found, MINUTE, width), failed, width)
        write_page(options.page, audit_page(summary, figures, listed))
    return summary


class _Tallies(NamedTuple):
    """Counts by name, firings by lateness (ms), and from the first minute with a firing to the last (ms)."""

    counts: Counter[str]
    lateness: list[tuple[int, int]]
    span: int


def _tallies(found: DataFrame) -> _Tallies:
    """Add up the numbers of all partitions; minutes, of which there can be very many, to their span."""
    is_minute = F.col("what") == MINUTE
    keys = F.when(~is_minute, F.col("at")).alias("late")
    table = found.where(F.col("what").isin(COUNT, LATENESS, MINUTE)).groupBy("what", "name", keys)
    rows = table.agg(F.sum("number").alias("number"), (F.max("at") - F.min("at")).alias("span")).collect()
    return _Tallies(
        Counter({row["name"]: row["number"] for row in rows if row["what"] == COUNT}),
        sorted((row["late"], row["number"]) for row in rows if row["what"] == LATENESS),
        next((row["span"] for row in rows if row["what"] == MINUTE), 0),
    )


def _listed(faults: DataFrame) -> list[FoundFault]:
    """Return the first faults of each kind."""
    in_order = Window.partitionBy("name").orderBy("at", "tenant", "id", "due")
    first = faults.withColumn("place", F.row_number().over(in_order)).where(F.col("place") <= MOST_LISTED)
    listed = [FoundFault(**row.asDict()) for row in _as_told(first).collect()]
    return sorted(listed, key=lambda fault: (_KINDS.index(fault.kind), fault.at, fault.tenant, fault.id))


def _numbers(found: DataFrame, what: str, width: int) -> list[tuple[int, int]]:
    """Return how many there are of something by `at`, in steps of a width (ms)."""
    of_kind = found.where(F.col("what") == what).groupBy((F.floor(F.col("at") / width) * width).alias("at"))
    return sorted((int(row.at), int(row.number)) for row in of_kind.agg(F.sum("number").alias("number")).collect())


def _as_told(faults: DataFrame) -> DataFrame:
    return faults.withColumnRenamed("name", "kind").select(*FoundFault.__dataclass_fields__)
