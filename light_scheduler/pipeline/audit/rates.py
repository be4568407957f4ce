"""Series at a fixed rate, computed by Spark itself: a check on what the engine makes of them.

The engine judges its own work in a replay, so where there is another way to count, it is taken: arithmetic in Spark,
from where a series begins and in steps of its interval. A line of history can stand for millions of times that were
skipped, so spans of times are compared, and only those that differ are listed. There is such a way
where nothing but the interval decides: for schedules without jitter and without an overlap policy, that were set once
and then left alone or cancelled. Cron, backoff and fixed delays have none: their next time is the engine's alone to
say.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from .evidence import HISTORY
from .faults import FaultKind
from .gathering import CARRIED
from .judging import FAULT
from .verdict import Bounds

MOST_LISTED = 1_000
"""Times that are listed of a span that differs."""

_EVENT = "event string, due bigint, at bigint, attempt int, count bigint"
_WHO = ["tenant", "id", "lane"]
_PLACE = ("topic", "partition", "offset")
_DEALT_WITH = ("fired", "skipped", "expired", "missed", "dead_lettered")


def series(evidence: DataFrame) -> DataFrame:
    """Return the series that can be checked: tenant, id, lane, interval, start (or null), recorded_at (all in ms).

    One that was carried over has no recorded_at, and `next` instead: its next time.
    """
    is_rate = F.col("interval").isNotNull()
    rates = evidence.where(is_rate).select(*_WHO).distinct()
    found = (
        evidence.where("asks is not null")
        .join(rates, _WHO, "left_semi")  # nearly all commands are for something else
        .groupBy(*_WHO)
        .agg(
            F.count_if(F.col("asks").isin("schedule", CARRIED)).alias("schedules"),
            F.count_if(~F.col("asks").isin("schedule", "cancel", CARRIED)).alias("others"),
            F.max(F.when(F.col("asks") == CARRIED, F.col("start"))).alias("next"),
            *(F.max(F.when(F.col("asks") == CARRIED, F.col(name))).alias(name) for name in _PLACE),
            F.max("interval").alias("interval"),
            F.max("start").alias("start"),
            F.max(F.when(is_rate, F.col("timestamp"))).alias("recorded_at"),
        )
    )
    return found.where("schedules = 1 and others = 0 and interval is not null").drop("schedules", "others")


def disagreements(events: DataFrame, series: DataFrame, bounds: Bounds) -> DataFrame:
    """Return, as findings, the times on which Spark and history differ about series: of each run of times that are
    missing, or that one line of history has too many, the first MOST_LISTED.

    `events` are those of these series. They are looked at many times: keep them, or each look parses all history.
    """
    begun = _begun(events, series)
    known = _dealt_with(events).join(begun, _WHO)
    missing = _listed(_gaps(known, begun), FaultKind.MISSING, "has this time, and history passes over it", bounds)
    surplus = _listed(_surplus(known), FaultKind.UNEXPECTED, "does not have this time", bounds)
    return missing.unionByName(surplus)


def events(evidence: DataFrame, series: DataFrame) -> DataFrame:
    """Return the history of series, parsed. Lines of other schedules, which are nearly all, are left out first."""
    recorded = evidence.where(F.col("kind") == HISTORY).select(*_WHO, "value", *_PLACE)
    of_series = recorded.join(series.drop(*_PLACE), _WHO)
    event = F.from_json(F.col("value").cast("string"), _EVENT)
    return of_series.select(*_WHO, "interval", "start", "recorded_at", event.alias("event"), *_PLACE).select(
        *_WHO, "interval", "start", "recorded_at", "event.*", *_PLACE
    )


def _begun(events: DataFrame, series: DataFrame) -> DataFrame:
    """Return the first time of each series, its interval, and the record that says so, as `of_*`."""
    begun = events.where("event = 'scheduled'").withColumn("begun", F.least("recorded_at", "at"))
    begun = begun.withColumn("anchor", F.coalesce("start", "begun"))
    first = F.expr("if(start >= begun, start, anchor + ((begun - anchor) div interval + 1) * interval)")
    begun = begun.select(*_WHO, "interval", first.alias("first"), *_PLACE)
    carried = series.where("next is not null").select(*_WHO, "interval", F.col("next").alias("first"), *_PLACE)
    renamed = {name: f"of_{name}" for name in _PLACE}
    return begun.unionByName(carried).dropDuplicates(_WHO).withColumnsRenamed(renamed)


def _dealt_with(events: DataFrame) -> DataFrame:
    """Return the times that history deals with, by line: from `due` to `until` in steps of the interval."""
    until = F.expr("due + (coalesce(count, 1) - 1) * interval").alias("until")
    dealt_with = events.where(F.col("event").isin(*_DEALT_WITH) & (F.col("attempt") == 1))
    return dealt_with.select(*_WHO, "due", until, *_PLACE)


def _gaps(known: DataFrame, begun: DataFrame) -> DataFrame:
    """Return the times of series that no line deals with, up to the last that one does, as `due` to `until`."""
    in_series = known.where("until >= first and (due - first) % interval = 0").select(*_WHO, "due", "until")
    last = known.groupBy(*_WHO).agg(F.max("until").alias("last")).join(begun, _WHO).where("last >= first")
    behind = F.expr("first + ((last - first) div interval + 1) * interval")
    ends = last.select(*_WHO, behind.alias("due"), behind.alias("until"))
    of_one = Window.partitionBy(*_WHO).orderBy("due", "until").rowsBetween(Window.unboundedPreceding, -1)
    dealt_with = in_series.unionByName(ends).withColumn("before", F.max("until").over(of_one)).join(begun, _WHO)
    gaps = dealt_with.select(
        *_WHO,
        F.expr("coalesce(greatest(before + interval, first), first)").alias("due"),
        F.expr("due - interval").alias("until"),
        "interval",
        *(F.col(f"of_{name}").alias(name) for name in _PLACE),
    )
    return gaps.where("due <= until")


def _surplus(known: DataFrame) -> DataFrame:
    """Return the times that lines deal with and series do not have, as `due` to `until`."""
    until = F.expr("if((due - first) % interval = 0, least(until, first - interval), until)").alias("until")
    return known.select(*_WHO, "due", until, "interval", *_PLACE).where("due <= until")


def _listed(spans: DataFrame, kind: FaultKind, detail: str, bounds: Bounds) -> DataFrame:
    """Return findings: the times within bounds of spans from `due` to `until`."""
    skipped = F.ceil((F.lit(bounds.start) - F.col("due")) / F.col("interval"))
    first = F.col("due") + F.greatest(F.lit(0), skipped) * F.col("interval")
    within = spans.withColumns({"due": first, "until": F.least("until", F.lit(bounds.end))}).where("due <= until")
    times = F.expr(f"sequence(due, least(until, due + {MOST_LISTED - 1} * interval), interval)")
    by_time = within.withColumn("due", F.explode(times)).groupBy(*_WHO, "due")
    listed = by_time.agg(*(F.first(name).alias(name) for name in _PLACE))
    return listed.select(
        F.lit(FAULT).alias("what"),
        F.lit(kind.value).alias("name"),
        *_WHO,
        "due",
        F.col("due").alias("at"),
        *_PLACE,
        F.lit(1).cast("bigint").alias("number"),
        F.lit(f"Spark's own sequence {detail}").alias("detail"),
    )
