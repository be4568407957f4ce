"""Changelogs as tables: the records that count, as a worker that restores would find them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from light_scheduler.model import Entry
from light_scheduler.model.probe import PROBE_IDENTITY
from light_scheduler.wire.state import BULK_PART_KIND, PROGRESS_KIND, SCHEDULE_KIND, decode_entry, decode_progress

from .job import Cluster
from .topics import read_topics


def last_records(spark: SparkSession, cluster: Cluster, changelog: str) -> DataFrame:
    """Return (partition, identity, schedule, progress) of a changelog: a row for each schedule of a user.

    What is committed when the query begins counts. `schedule` is null if the schedule is done with; `progress` is null
    unless it is split and has moved on. Beside workers a schedule that changes meanwhile can be missing, or be as it
    was before: `snapshots` has all of them.
    """
    return schedules_of(latest(read_topics(spark, cluster.bootstrap_servers, [changelog], **cluster.client_options())))


def latest(records: DataFrame) -> DataFrame:
    """Return (partition, identity, defined, moved) of records of a changelog.

    These are the last record of the schedule itself and that of its progress, as offset and value; null: there is none.
    """
    return (
        records.withColumn("kind", F.substring("key", 1, 1))
        .where((F.col("kind") == F.lit(SCHEDULE_KIND)) | (F.col("kind") == F.lit(PROGRESS_KIND)))
        .groupBy("partition", F.expr("substring(key, 2)").alias("identity"))
        .agg(_last(SCHEDULE_KIND).alias("defined"), _last(PROGRESS_KIND).alias("moved"))
    )


def latest_of_both(earlier: DataFrame, later: DataFrame) -> DataFrame:
    """Return what `latest` would of the records of both, of which those of `later` are behind all of `earlier`."""
    keys = ["partition", "identity"]
    both = earlier.join(later.withColumnsRenamed({"defined": "_defined", "moved": "_moved"}), keys, "full_outer")
    return both.select(
        *keys,
        F.coalesce("_defined", "defined").alias("defined"),
        F.coalesce("_moved", "moved").alias("moved"),
    )


def schedules_of(latest: DataFrame) -> DataFrame:
    """Return the schedules of users in what `latest` has returned, as `last_records` does."""
    # Progress counts for the schedule record before it in the log: an older one is that of an earlier version.
    users = F.substring("identity", 1, 1) != F.lit(PROBE_IDENTITY[:1])
    return (
        latest.where("defined is not null")
        .where(users)
        .select(
            "partition",
            "identity",
            F.col("defined.value").alias("schedule"),
            F.when(F.col("moved.offset") > F.col("defined.offset"), F.col("moved.value")).alias("progress"),
        )
    )


def bulk_commands_at_work(spark: SparkSession, cluster: Cluster, changelog: str) -> int:
    """Return how many bulk commands have begun in a partition of a changelog and are not done there."""
    records = read_topics(spark, cluster.bootstrap_servers, [changelog], **cluster.client_options())
    parts = records.where(F.substring("key", 1, 1) == F.lit(BULK_PART_KIND))
    last = parts.groupBy("partition", "key").agg(F.max_by("value", "offset").alias("value"))
    return last.where("value is not null").count()


def decoded(schedule: bytes, progress: bytes | None) -> Entry:
    """Return a pending schedule from its records. Raises FormatTooNew or FormatError."""
    entry = decode_entry(schedule)
    return entry if progress is None else Entry(entry.schedule, decode_progress(progress))


def _last(kind: bytes) -> Column:
    """Return the last record of a kind, as offset and value; null if there is none."""
    is_it = F.col("kind") == F.lit(kind)
    return F.max_by(F.struct("offset", "value"), F.when(is_it, F.col("offset")))
