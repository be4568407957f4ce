"""Looking at files with few tasks, however many files there are.

A load has a task for each file, because it sends what is in them. To look something up in a thousand small files, a
thousand tasks would take longer than the look.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from light_scheduler.pipeline.job import configured, parallelism

_PER_CORE = 4
"""Files differ in size: with a task for each core, all would wait for the one that has the largest."""

_CORES = 8
"""With Spark Connect, where nobody knows how many there are."""

_TASK_BYTES = 128 << 20
"""What one task reads of large files: as much as Spark gives it unless it is told otherwise."""

_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def in_few_tasks(files: DataFrame, size: int = 0) -> DataFrame:
    """Return a table of files that a few tasks for each core read, or more if so many bytes of them are read."""
    return files.coalesce(max(most_tasks(files.sparkSession), size // _TASK_BYTES))


def listing_in_few_tasks(spark: SparkSession) -> AbstractContextManager[None]:
    """Have a few tasks for each core look up the paths that are read within a block."""
    return configured(spark, {_LISTING: str(most_tasks(spark))})


def most_tasks(spark: SparkSession) -> int:
    """Return how many tasks a look has at most."""
    return _PER_CORE * (parallelism(spark) or _CORES)
