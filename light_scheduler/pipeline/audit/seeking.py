"""Looks for messages that do not name their schedules, as in the dialect of sky-uk's scheduler.

A message with the expected content may belong to another firing with the same content, or to another producer. So
messages are counted: a firing is missing if the history has more firings of a content up to then than the topic has
messages. Messages up to LAG_MS before the first of these firings and after each of them count too: clocks may differ by
so much. A message that is not one of these firings can hide a missing one in that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.pipeline.schemas import arrow_schema

from .evidence import content_of, kafka_rows
from .faults import FaultKind
from .sources import Source
from .verdict_table import FAULT, SOUGHT, kept

_CONTENTS = "target string, content binary, timestamp bigint"
_READ = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_OF_ONE = ["target", "content"]


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
    messages = there.join(sought.select(*_OF_ONE), _OF_ONE, "left_semi").select(
        *_OF_ONE, (F.col("timestamp") - LAG_MS).alias("time"), F.lit(1).alias("message")
    )
    in_order = Window.partitionBy(*_OF_ONE).orderBy("at", "topic", "partition", "offset")
    told = sought.withColumns({"place": F.row_number().over(in_order), "time": F.col("at"), "message": F.lit(0)})
    up_to_then = Window.partitionBy(*_OF_ONE).orderBy("time").rangeBetween(Window.unboundedPreceding, 0)
    both = told.unionByName(messages, allowMissingColumns=True)
    counted = both.withColumn("there", F.sum("message").over(up_to_then)).where(F.col("message") == 0)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    lack = F.col("place") - F.col("there")
    known = F.coalesce(F.max(lack).over(before), F.lit(0))  # a lack is told once, of the firing where it begins
    detail = "the history has %s messages with this content up to then, but there are %s in %s"
    return (
        counted.withColumn("known", F.greatest(known, F.lit(0)))
        .where(lack > F.col("known"))
        .select(
            F.lit(FAULT).alias("what"),
            F.lit(FaultKind.MISSING.value).alias("name"),
            *("tenant", "id", "lane", "due", "at", "topic", "partition", "offset", "number"),
            F.format_string(detail, "place", "there", "target").alias("detail"),
        )
    )


def _contents(records: DataFrame) -> DataFrame:
    """Return topic, content digest and timestamp (UTC epoch ms) of each record."""
    schema = arrow_schema(_CONTENTS)

    def digested(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                (row.topic, content_of(row.key, row.value, row.headers).digest, row.timestamp)
                for row in kafka_rows(batch)
            ]
            targets, contents, timestamps = zip(*rows, strict=True) if rows else ((), (), ())
            yield pa.RecordBatch.from_arrays(
                [pa.array(targets, pa.string()), pa.array(contents, pa.binary()), pa.array(timestamps, pa.int64())],
                schema=schema,
            )

    return records.withColumn("timestamp", F.unix_millis("timestamp")).select(*_READ).mapInArrow(digested, _CONTENTS)
