"""A load that goes on: new versions of a Delta table, or new files of a folder, until it is to stop.

Files come through a stream of Spark, which tells new files from those that it has seen; each micro-batch is loaded like
a table. A Delta table is loaded again and again, because Delta's own stream fails of changed rows or passes over them,
while a load finds what differs between two versions. In both cases the marks decide what is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from light_scheduler.pipeline.tables import located, reading_options

_LOOK_EVERY_S = 1
_ANY_AGE = "36500d"
"""Spark passes over files that are a week older than the newest one it has seen: `mv` and `rsync` keep the time."""
_FILES_AT_ONCE = "100"
"""Files of a micro-batch, unless the reader's option `maxFilesPerTrigger` says otherwise: a stop waits for one."""


class _StoppedError(Exception):
    """A micro-batch is not loaded any more: Spark must not take note that it was."""


def repeat(load: Callable[[], None], every_s: float, stop: threading.Event) -> None:
    """Load, and load again after each pause, until it is to stop."""
    load()
    while not stop.wait(every_s):
        load()


def follow_files(
    files: DataFrame, load: Callable[[DataFrame], None], every_s: float, checkpoint: str | None, stop: threading.Event
) -> None:
    """Load each micro-batch of a stream of files until it is to stop; the last one is finished."""

    at_work = threading.Lock()
    is_cut_short = False

    def batch(rows: DataFrame, _: int) -> None:
        nonlocal is_cut_short
        with at_work:
            if stop.is_set():
                is_cut_short = True
                raise _StoppedError
            load(rows)

    writer = files.writeStream.queryName("load").foreachBatch(batch).trigger(processingTime=f"{every_s} seconds")
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", located(files.sparkSession, checkpoint))
    query = writer.start()
    try:
        while not stop.is_set() and not query.awaitTermination(_LOOK_EVERY_S):
            pass
    except StreamingQueryException:
        if not is_cut_short:
            raise
    finally:
        stop.set()
        with at_work:  # it would go on by itself, and nobody would count what it has done
            pass
        query.stop()
    if (failure := query.exception()) is not None and not is_cut_short:
        raise failure


def stream_of(spark: SparkSession, path: str, format: str, options: Mapping[str, Any], schema: StructType) -> DataFrame:
    """Return the files of a folder as a stream, those that are there first."""
    reader = spark.readStream.format(format).schema(schema).option("maxFilesPerTrigger", _FILES_AT_ONCE)
    reader = reader.option("maxFileAge", _ANY_AGE)
    return reader.options(**{**reading_options(format), **options}).load(located(spark, path))
