"""A load that goes on: new versions of a Delta table, or new files of a folder, until it is to stop.

Files come through a stream of Spark, which tells new files from those that it has seen; each micro-batch is loaded like
a table. A Delta table is loaded again and again, because Delta's own stream fails of changed rows or passes over them,
while a load finds what differs between two versions. In both cases the marks decide what is sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import is_pattern, without_globs
from light_scheduler.pipeline.tables import located, reading_options

from .job_marks import MarksAwayError
from .stream_files import Checkpoint, LocalCheckpoint, SparkCheckpoint, files_of

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1
_ANY_AGE = "36500d"
"""Spark passes over files that are a week older than the newest one it has seen: `mv` and `rsync` keep the time."""
_FILES_AT_ONCE = "100"
"""Files of a micro-batch, unless the reader's option `maxFilesPerTrigger` says otherwise: a stop waits for one."""


class _StoppedError(Exception):
    """A micro-batch is not loaded any more: Spark must not take note that it was."""


def repeat(load: Callable[[], None], every_s: float, stop: threading.Event) -> None:
    """Load, and load again after each pause, until it is to stop.

    While Kafka is away, later loads are tried again: nothing of them has begun. The first one fails of it.
    """
    load()
    while not stop.wait(every_s):
        try:
            load()
        except MarksAwayError as error:
            log.warning("%s. Trying again in %g s", error, every_s)


def follow_files(
    files: DataFrame,
    load: Callable[[DataFrame, list[str]], None],
    every_s: float,
    checkpoint: str | None,
    stop: threading.Event,
) -> None:
    """Load each micro-batch of a stream of files, given its rows and its files, until it is to stop.

    The last one is finished.
    """

    at_work = threading.Lock()
    is_cut_short = False
    refusal: JobError | None = None  # which Spark has in the text of its own

    def batch(rows: DataFrame, number: int) -> None:
        nonlocal is_cut_short, refusal
        with at_work:
            if stop.is_set():
                is_cut_short = True
                raise _StoppedError
            try:
                load(rows, files_of(noted, number))
            except JobError as error:
                refusal = error
                raise

    with _checkpoint(files.sparkSession, checkpoint) as (place, noted):
        writer = files.writeStream.queryName("load").foreachBatch(batch).trigger(processingTime=f"{every_s} seconds")
        query = writer.option("checkpointLocation", place).start()
        try:
            while not stop.is_set() and not query.awaitTermination(_LOOK_EVERY_S):
                pass
        except StreamingQueryException:
            if refusal is not None:
                raise refusal from None
            if not is_cut_short:
                raise
        finally:
            stop.set()
            with at_work:  # it would go on by itself, and nobody would count what it has done
                pass
            query.stop()
        if refusal is not None:
            raise refusal
        if (failure := query.exception()) is not None and not is_cut_short:
            raise failure


@contextmanager
def _checkpoint(spark: SparkSession, path: str | None) -> Iterator[tuple[str, Checkpoint]]:
    """Yield the place of a stream's checkpoint and what reads it: at a path, or on this machine until the block ends.

    Only the driver writes one and reads it, since the stream has no state.
    """
    if path is not None:
        place = located(spark, path)
        yield place, SparkCheckpoint(spark, place)
        return
    with TemporaryDirectory(prefix="light-scheduler-load-", ignore_cleanup_errors=True) as folder:
        yield f"file:{folder}", LocalCheckpoint(Path(folder))


def table_of(
    spark: SparkSession, path: str, files: Sequence[str], format: str, options: Mapping[str, Any], schema: StructType
) -> DataFrame:
    """Return some files of a folder, whose schema is known, as a stream of the folder reads them."""
    reader = spark.read.format(format).schema(schema).options(**{**reading_options(format), **options})
    root = located(spark, path)
    if not is_pattern(root) and "basepath" not in map(str.lower, options):
        reader = reader.option("basePath", root)  # below which names of folders have columns
    return reader.load([without_globs(unquote(file)) for file in files])


def stream_of(spark: SparkSession, path: str, format: str, options: Mapping[str, Any], schema: StructType) -> DataFrame:
    """Return the files of a folder as a stream, those that are there first."""
    reader = spark.readStream.format(format).schema(schema).option("maxFilesPerTrigger", _FILES_AT_ONCE)
    reader = reader.option("maxFileAge", _ANY_AGE)
    return reader.options(**{**reading_options(format), **options}).load(located(spark, path))
