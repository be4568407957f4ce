"""A continuous load: of new versions of a Delta table, or of new files in a folder, until it is stopped.

Files come through a stream of Spark, which recognises new files; each micro-batch is loaded like a table. A Delta table
is loaded again and again, because Delta's own stream fails on changed rows or skips them, while a load finds the
differences between two versions. In both cases the marks decide what is sent.
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
"""Spark skips files that are a week older than the newest one it has seen, but `mv` and `rsync` keep the time."""
_FILES_AT_ONCE = "100"
"""Number of files in a micro-batch, unless the reader's option `maxFilesPerTrigger` is set. A stop waits for one
micro-batch."""


class _StoppedError(Exception):
    """A micro-batch is not loaded any more, and Spark must not record it as done."""


def repeat(load: Callable[[], None], every_s: float, stop: threading.Event) -> None:
    """Load, and load again after each pause, until `stop` is set.

    While Kafka is unavailable, later loads are retried, since they have not begun. The first load fails.
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
    """Load each micro-batch of a stream of files, given its rows and files, until `stop` is set.

    The last one is completed.
    """

    at_work = threading.Lock()
    is_cut_short = False
    refusal: JobError | None = None  # Spark only has it in the text of its own error

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
            with at_work:  # otherwise it would continue in the background, and its result would be lost
                pass
            query.stop()
        if refusal is not None:
            raise refusal
        if (failure := query.exception()) is not None and not is_cut_short:
            raise failure


@contextmanager
def _checkpoint(spark: SparkSession, path: str | None) -> Iterator[tuple[str, Checkpoint]]:
    """Yield the path of a stream's checkpoint and its reader: at `path`, or a temporary one on this machine.

    Only the driver reads and writes it, since the stream has no state.
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
    """Return files of a folder with a known schema, in the way the folder's stream reads them."""
    reader = spark.read.format(format).schema(schema).options(**{**reading_options(format), **options})
    root = located(spark, path)
    if not is_pattern(root) and "basepath" not in map(str.lower, options):
        reader = reader.option("basePath", root)  # below it, names of folders have columns
    return reader.load([without_globs(unquote(file)) for file in files])


def stream_of(spark: SparkSession, path: str, format: str, options: Mapping[str, Any], schema: StructType) -> DataFrame:
    """Return the files of a folder as a stream, existing ones first."""
    reader = spark.readStream.format(format).schema(schema).option("maxFilesPerTrigger", _FILES_AT_ONCE)
    reader = reader.option("maxFileAge", _ANY_AGE)
    return reader.options(**{**reading_options(format), **options}).load(located(spark, path))
