"""Examines files with few tasks, however many files there are.

A load has a task for each file, because it sends its content. For a look-up in a thousand small files, a thousand tasks
would take longer than the look-up itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from light_scheduler.pipeline.job import configured, parallelism

_PER_CORE = 4
"""Tasks per core. Files differ in size: with one task per core, all would wait for the one with the largest file."""

_CORES = 8
"""Assumed number of cores with Spark Connect, where it is unknown."""

_TASK_BYTES = 128 << 20
"""Bytes of large files per task: Spark's default."""

_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def in_few_tasks(files: DataFrame, size: int = 0) -> DataFrame:
    """Return a table of files that is read by a few tasks per core, or by more if `size` bytes of them are read."""
    return files.coalesce(max(most_tasks(files.sparkSession), size // _TASK_BYTES))


def listing_in_few_tasks(spark: SparkSession) -> AbstractContextManager[None]:
    """Within the block, use a few tasks per core to list paths."""
    return configured(spark, {_LISTING: str(most_tasks(spark))})


def most_tasks(spark: SparkSession) -> int:
    """Return the maximum number of tasks for a look-up."""
    return _PER_CORE * (parallelism(spark) or _CORES)
