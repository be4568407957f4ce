"""Looks for messages that do not name their schedules, as in the dialect of sky-uk's scheduler.

A message with the expected content may belong to another firing with the same content, or to another producer. So
messages are counted:

1. A worker gives a message the instant of its line in the history as timestamp. As many firings of an instant are found
   as there are messages of that instant whose sender set the timestamp. Such messages of other instants are of others.
2. Of the firings that are left, one is missing if there are more of them up to then than messages whose timestamp the
   broker set. Messages up to LAG_MS before the first of these firings and after each of them count: clocks may differ
   by so much. A message that is not one of these firings can hide a missing one in that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.pipeline.schemas import arrow_schema

from .evidence import batch_of, content_of, kafka_rows
from .faults import FaultKind
from .sources import Source
from .traced import CREATE_TIME
from .verdict_table import FAULT, SOUGHT, kept

_CONTENTS = "target string, content binary, time bigint, by_sender boolean"
_READ = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_OF_ONE = ["target", "content"]
_PLACE = ("topic", "partition", "offset")


def lacking(found: DataFrame, source: Source, stack: ExitStack) -> DataFrame | None:
    """Return faults for the SOUGHT firings in findings that have no message; None if no firing is sought."""
    sought = kept(
        found.where(F.col("what") == SOUGHT).withColumnsRenamed({"detail": "target", "key": "content"}), stack
    )
    begins = sought.groupBy("target").agg(F.min("at").alias("at")).collect()
    if not begins:
        return None
    # A message and its line of history are in one transaction; a broker's clock may be a little behind the worker's.
    since = max(0, min(row["at"] for row in begins) - LAG_MS)
    there = _contents(source.since([row["target"] for row in begins], since))
    messages = there.join(sought.select(*_OF_ONE), _OF_ONE, "left_semi").withColumn("message", F.lit(1))
    told = sought.withColumns({"time": F.col("at"), "message": F.lit(0)})
    lacked = _too_few(_not_sent_at_once(told.unionByName(messages, allowMissingColumns=True)))
    detail = "history tells that it was delivered, and %s has too few messages with its content at that time"
    return lacked.select(
        F.lit(FAULT).alias("what"),
        F.lit(FaultKind.MISSING.value).alias("name"),
        *("tenant", "id", "lane", "due", "at", *_PLACE, "number"),
        F.format_string(detail, "target").alias("detail"),
        F.col("at").cast("string").cast("binary").alias("key"),
        "value",
    )


def _not_sent_at_once(both: DataFrame) -> DataFrame:
    """Leave out firings and messages of the same instant, and all other messages whose sender set the timestamp."""
    at_once = Window.partitionBy(*_OF_ONE, "time")
    sent = F.count_if(F.coalesce("by_sender", F.lit(False))).over(at_once)
    place = F.row_number().over(at_once.orderBy("message", *_PLACE))  # firings come first
    counted = both.withColumns({"sent": sent, "place": place})
    is_left = F.when(F.col("message") == 0, F.col("place") > F.col("sent")).otherwise(~F.col("by_sender"))
    return counted.where(is_left)


def _too_few(both: DataFrame) -> DataFrame:
    """Return the firings from which on there are too few messages."""
    place = F.row_number().over(Window.partitionBy(*_OF_ONE, "message").orderBy("time", *_PLACE))
    from_then = F.when(F.col("message") == 1, F.col("time") - LAG_MS).otherwise(F.col("time"))
    up_to_then = Window.partitionBy(*_OF_ONE).orderBy("time").rangeBetween(Window.unboundedPreceding, 0)
    placed = both.withColumns({"place": place, "time": from_then})
    counted = placed.withColumn("there", F.sum("message").over(up_to_then)).where(F.col("message") == 0)
    lack = F.col("place") - F.col("there")
    before = Window.partitionBy(*_OF_ONE).orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    known = F.coalesce(F.max(lack).over(before), F.lit(0))  # a lack is told once, of the firing where it begins
    return counted.withColumn("known", F.greatest(known, F.lit(0))).where(lack > F.col("known"))


def _contents(records: DataFrame) -> DataFrame:
    """Return topic, content digest and timestamp (UTC epoch ms) of each record, and whether its sender set that."""
    schema = arrow_schema(_CONTENTS)

    def digested(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                (row.topic, content_of(row.key, row.value, row.headers).digest, row.timestamp, type == CREATE_TIME)
                for row, type in zip(kafka_rows(batch), batch.column("timestampType").to_pylist(), strict=True)
            ]
            yield batch_of(rows, schema)

    return records.withColumn("timestamp", F.unix_millis("timestamp")).select(*_READ).mapInArrow(digested, _CONTENTS)
