"""Series at a fixed rate, computed by Spark itself: a check on what the engine makes of them.

The engine judges its own work in a replay, so where there is another way to count, it is taken: arithmetic in Spark,
from where a series begins and in steps of its interval. A line of history can stand for millions of times that were
skipped, so spans of times are compared, and only those that differ are listed. There is such a way
where nothing but the interval decides: for schedules without jitter and without an overlap policy, that were set once
and then left alone or cancelled. Cron, backoff and fixed delays have none: their next time is the engine's alone to
say.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from .bounds import Bounds
from .evidence import HISTORY
from .faults import FaultKind
from .gathering import CARRIED
from .verdict_table import FAULT

MOST_LISTED = 1_000
"""Times that are listed of a span that differs."""

_EVENT = "event string, due bigint, at bigint, attempt int, count bigint"
_WHO = ["tenant", "id", "lane"]
_PLACE = ("topic", "partition", "offset")
_DEALT_WITH = ("fired", "skipped", "expired", "missed", "dead_lettered")


def series(evidence: DataFrame, compacted: Collection[str] = ()) -> DataFrame:
    """Return the series that can be checked: tenant, id, lane, interval, start (or null), recorded_at (all in ms).

    One that was carried over has no recorded_at, and `next` instead: its next time. Those of `compacted` commands
    topics are left out: what they were before may be gone.
    """
    is_rate = F.col("interval").isNotNull() & ~F.col("topic").isin(*compacted)
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

    `events` are those of these series. They are read once, and brought together by series once.
    """
    spans = F.explode(F.array(_gap(), _surplus()))
    found = _in_order(_by_series(events, series)).select(*_WHO, "interval", spans.alias("span"))
    return _listed(found.select(*_WHO, "interval", "span.*").where("due <= until"), bounds)


def events(evidence: DataFrame, series: DataFrame) -> DataFrame:
    """Return the history of series, parsed. Lines of other schedules, which are nearly all, are left out first."""
    recorded = evidence.where(F.col("kind") == HISTORY).select(*_WHO, "value", *_PLACE)
    of_series = recorded.join(series.drop(*_PLACE), _WHO)
    # From a generator: Spark would parse a line once for each use of a member.
    event = F.explode(F.array(F.from_json(F.col("value").cast("string"), _EVENT)))
    return of_series.select(*_WHO, "interval", "start", "recorded_at", event.alias("event"), *_PLACE).select(
        *_WHO, "interval", "start", "recorded_at", "event.*", *_PLACE
    )


def _by_series(events: DataFrame, series: DataFrame) -> DataFrame:
    """Return the times that history deals with, by line: from `due` to `until` in steps of the interval.

    And a row for each series behind the last of them, which ends what can be missing. All rows have the `first` time of
    their series, and the record that says so, as `of_*`.
    """
    columns = (*_WHO, "interval", "due", "until", *_PLACE)
    until = F.expr("due + (coalesce(count, 1) - 1) * interval")
    is_dealt_with = F.col("event").isin(*_DEALT_WITH) & (F.col("attempt") == 1)
    dealt_with = events.where(is_dealt_with | (F.col("event") == "scheduled")).withColumns(
        {"due": F.when(is_dealt_with, F.col("due")), "until": F.when(is_dealt_with, until)}
    )
    recorded = dealt_with.select(*columns, F.when(F.col("event") == "scheduled", _first()).alias("first"))
    nothing = F.lit(None).cast("bigint")
    carried = series.where("next is not null").withColumns({"due": nothing, "until": nothing, "first": F.col("next")})
    begun = F.when(F.col("first").isNotNull(), F.struct("first", *_PLACE))
    of_one = Window.partitionBy(*_WHO)
    rows = recorded.unionByName(carried.select(*columns, "first")).withColumns(
        {"is_end": F.col("first").isNotNull(), "begun": F.min(begun).over(of_one), "last": F.max("until").over(of_one)}
    )
    behind = F.expr("begun.first + ((last - begun.first) div interval + 1) * interval")
    ends = {name: F.when(F.col("is_end"), behind).otherwise(F.col(name)) for name in ("due", "until")}
    rows = rows.where("begun is not null and (not is_end or last >= begun.first)").withColumns(ends)
    of = (F.col(f"begun.{name}").alias(f"of_{name}") for name in _PLACE)
    return rows.select(*columns, "is_end", F.col("begun.first").alias("first"), *of)


def _first() -> Column:
    """Return the first time of a series that history says was scheduled."""
    begun = "least(recorded_at, at)"
    anchor = f"coalesce(start, {begun})"
    return F.expr(f"if(start >= {begun}, start, {anchor} + (({begun} - {anchor}) div interval + 1) * interval)")


def _in_order(rows: DataFrame) -> DataFrame:
    """Add whether a row is of a time that its series has, and up to which of them the rows `before` it deal with."""
    of_one = Window.partitionBy(*_WHO).orderBy("due", "until").rowsBetween(Window.unboundedPreceding, -1)
    is_in_series = F.expr("until >= first and (due - first) % interval = 0")
    before = F.max(F.when(F.col("is_in_series"), F.col("until"))).over(of_one)
    return rows.withColumn("is_in_series", is_in_series).withColumn("before", before)


def _gap() -> Column:
    """Return the times of a series between a row and those before it, which no line deals with."""
    due = F.expr("coalesce(greatest(before + interval, first), first)")
    until = F.expr("if(is_in_series, due - interval, null)")
    place = (F.col(f"of_{name}").alias(name) for name in _PLACE)
    return _span(FaultKind.MISSING, "has this time, and history passes over it", due, until, *place)


def _surplus() -> Column:
    """Return the times that a line deals with and its series does not have."""
    until = F.expr("if((due - first) % interval = 0, least(until, first - interval), until)")
    of_line = F.when(~F.col("is_end"), until)
    return _span(FaultKind.UNEXPECTED, "does not have this time", F.col("due"), of_line, *map(F.col, _PLACE))


def _span(kind: FaultKind, detail: str, due: Column, until: Column, *place: Column) -> Column:
    told = F.lit(kind.value).alias("name"), F.lit(f"Spark's own sequence {detail}").alias("detail")
    return F.struct(*told, due.alias("due"), until.alias("until"), *place)


def _listed(spans: DataFrame, bounds: Bounds) -> DataFrame:
    """Return findings: the times within bounds of spans from `due` to `until`."""
    skipped = F.ceil((F.lit(bounds.start) - F.col("due")) / F.col("interval"))
    first = F.col("due") + F.greatest(F.lit(0), skipped) * F.col("interval")
    within = spans.withColumns({"due": first, "until": F.least("until", F.lit(bounds.end))}).where("due <= until")
    times = F.expr(f"sequence(due, least(until, due + {MOST_LISTED - 1} * interval), interval)")
    by_time = within.withColumn("due", F.explode(times)).groupBy(*_WHO, "name", "detail", "due")
    listed = by_time.agg(*(F.first(name).alias(name) for name in _PLACE))
    return listed.select(
        F.lit(FAULT).alias("what"),
        "name",
        *_WHO,
        "due",
        F.col("due").alias("at"),
        *_PLACE,
        F.lit(1).cast("bigint").alias("number"),
        "detail",
    )
