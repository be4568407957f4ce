"""Looks for messages that do not name their schedules, as in the dialect of sky-uk's scheduler.

A message with the expected content may belong to another firing with the same content, or to another producer. So
messages are counted: a firing is missing if the history has more firings of a content than the topic has messages.
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

_CONTENTS = "target string, content binary"
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
    number = (
        there.join(sought.select(*_OF_ONE), _OF_ONE, "left_semi").groupBy(*_OF_ONE).agg(F.count("*").alias("there"))
    )
    in_order = Window.partitionBy(*_OF_ONE).orderBy("at", "topic", "partition", "offset")
    told = sought.withColumns({"place": F.row_number().over(in_order)})
    counted = told.join(number, _OF_ONE, "left").withColumn("there", F.coalesce("there", F.lit(0)))
    detail = "the history has %s messages with this content up to then, but there are %s in %s"
    return counted.where(F.col("place") > F.col("there")).select(
        F.lit(FAULT).alias("what"),
        F.lit(FaultKind.MISSING.value).alias("name"),
        *("tenant", "id", "lane", "due", "at", "topic", "partition", "offset", "number"),
        F.format_string(detail, "place", "there", "target").alias("detail"),
    )


def _contents(records: DataFrame) -> DataFrame:
    """Return topic and content digest of each record."""
    schema = arrow_schema(_CONTENTS)

    def digested(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [(row.topic, content_of(row.key, row.value, row.headers).digest) for row in kafka_rows(batch)]
            targets, contents = zip(*rows, strict=True) if rows else ((), ())
            yield pa.RecordBatch.from_arrays(
                [pa.array(targets, pa.string()), pa.array(contents, pa.binary())], schema=schema
            )

    return records.select(*_READ).mapInArrow(digested, _CONTENTS)
