"""Series at a fixed rate, expanded by Spark itself: a check on what the engine makes of them.

The engine judges its own work in a replay, so where there is another way to count, it is taken: Spark's `sequence`,
from where a series begins and in steps of its interval. There is one where nothing but the interval decides: for
schedules without jitter and without an overlap policy, that were set once and then left alone or cancelled. Cron,
backoff and fixed delays have none: their next time is the engine's alone to say.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from .evidence import TOLD
from .faults import FaultKind
from .gathering import CARRIED
from .judging import FAULT
from .verdict import Bounds

_EVENT = "event string, due bigint, at bigint, attempt int, count bigint"
_WHO = ["tenant", "id", "lane"]
_PLACE = ("topic", "partition", "offset")
_DEALT_WITH = ("fired", "skipped", "expired", "missed", "dead_lettered")


def series(evidence: DataFrame) -> DataFrame:
    """Return the series that can be checked: tenant, id, lane, interval, start (or null), recorded_at (all in ms).

    One that was carried over has no recorded_at, and `next` instead: its next time.
    """
    is_rate = F.col("interval").isNotNull()
    found = (
        evidence.where("asks is not null")
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


def disagreements(evidence: DataFrame, series: DataFrame, bounds: Bounds) -> DataFrame:
    """Return, as findings, the times on which Spark and history differ about series."""
    events = (
        evidence.where(F.col("kind") == TOLD)
        .drop("interval", "start")
        .withColumn("event", F.from_json(F.col("value").cast("string"), _EVENT))
        .join(series.drop(*_PLACE), _WHO)
        .select(*_WHO, "interval", "start", "recorded_at", "event.*", *_PLACE)
    )
    dealt_with = (
        events.where(F.col("event").isin(*_DEALT_WITH) & (F.col("attempt") == 1))
        .withColumn("due", F.explode(F.expr("sequence(due, due + (coalesce(count, 1) - 1) * interval, interval)")))
        .groupBy(*_WHO, "due")
        .agg(*(F.first(name).alias(name) for name in _PLACE))
    )
    begun = events.where("event = 'scheduled'").withColumn("begun", F.least("recorded_at", "at"))
    begun = begun.withColumn("anchor", F.coalesce("start", "begun"))
    first = F.expr("if(start >= begun, start, anchor + ((begun - anchor) div interval + 1) * interval)")
    begun = begun.select(*_WHO, "interval", first.alias("first"), *_PLACE)
    carried = series.where("next is not null").select(*_WHO, "interval", F.col("next").alias("first"), *_PLACE)
    begun = begun.unionByName(carried)
    last = dealt_with.groupBy(*_WHO).agg(F.max("due").alias("last"))
    planned = begun.join(last, _WHO).where("last >= first")
    planned = planned.withColumn("due", F.explode(F.expr("sequence(first, last, interval)")))
    planned = planned.select(*_WHO, "due", *(F.col(name).alias(f"of_{name}") for name in _PLACE))
    differing = planned.join(dealt_with, [*_WHO, "due"], "full_outer").where("topic is null or of_topic is null")
    is_missing = F.col("topic").isNull()
    return differing.where(F.col("due").between(bounds.start, bounds.end)).select(
        F.lit(FAULT).alias("what"),
        F.when(is_missing, FaultKind.MISSING.value).otherwise(FaultKind.UNEXPECTED.value).alias("name"),
        *_WHO,
        "due",
        F.col("due").alias("at"),
        *(F.coalesce(name, f"of_{name}").alias(name) for name in _PLACE),
        F.lit(1).cast("bigint").alias("number"),
        F.when(is_missing, "Spark's own sequence has this time, and history passes over it")
        .otherwise("Spark's own sequence does not have this time")
        .alias("detail"),
    )
