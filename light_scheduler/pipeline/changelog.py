"""Changelogs as tables of their current records, as a restoring worker would find them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from light_scheduler.model import Entry
from light_scheduler.model.probe import PROBE_IDENTITY
from light_scheduler.wire.state import BULK_PART_KIND, PROGRESS_KIND, SCHEDULE_KIND, decode_entry, decode_progress

from .job import Cluster
from .topics import read_topics


def last_records(spark: SparkSession, cluster: Cluster, changelog: str) -> DataFrame:
    """Return (partition, identity, schedule, progress) of a changelog: one row for each user's schedule.

    It includes what is committed when the query begins. `schedule` is null if the schedule has ended; `progress` is
    null unless it is stored separately and has changed. While workers run, a schedule that changes meanwhile can be
    missing or outdated; `snapshots` avoids that.
    """
    return schedules_of(latest(read_topics(spark, cluster.bootstrap_servers, [changelog], **cluster.client_options())))


def latest(records: DataFrame) -> DataFrame:
    """Return (partition, identity, defined, moved) of a changelog's records.

    These are the last record of the schedule itself and the last one of its progress, as offset and value; null if
    missing.
    """
    return (
        records.withColumn("kind", F.substring("key", 1, 1))
        .where((F.col("kind") == F.lit(SCHEDULE_KIND)) | (F.col("kind") == F.lit(PROGRESS_KIND)))
        .groupBy("partition", F.expr("substring(key, 2)").alias("identity"))
        .agg(_last(SCHEDULE_KIND).alias("defined"), _last(PROGRESS_KIND).alias("moved"))
    )


def latest_of_both(earlier: DataFrame, later: DataFrame) -> DataFrame:
    """Return the result of `latest` for the records of both, where all records of `later` follow those of `earlier`."""
    keys = ["partition", "identity"]
    both = earlier.join(later.withColumnsRenamed({"defined": "_defined", "moved": "_moved"}), keys, "full_outer")
    return both.select(
        *keys,
        F.coalesce("_defined", "defined").alias("defined"),
        F.coalesce("_moved", "moved").alias("moved"),
    )


def schedules_of(latest: DataFrame) -> DataFrame:
    """Return the users' schedules in a result of `latest`, in the form of `last_records`."""
    # Progress only applies to the schedule record before it in the log: older progress belongs to an earlier version.
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
    """Return the number of unfinished bulk commands in the partitions of a changelog."""
    records = read_topics(spark, cluster.bootstrap_servers, [changelog], **cluster.client_options())
    parts = records.where(F.substring("key", 1, 1) == F.lit(BULK_PART_KIND))
    last = parts.groupBy("partition", "key").agg(F.max_by("value", "offset").alias("value"))
    return last.where("value is not null").count()


def decoded(schedule: bytes, progress: bytes | None) -> Entry:
    """Decode a pending schedule from its records. Raises FormatTooNew or FormatError."""
    entry = decode_entry(schedule)
    return entry if progress is None else Entry(entry.schedule, decode_progress(progress))


def _last(kind: bytes) -> Column:
    """Return the last record of a kind, as offset and value; null if there is none."""
    is_it = F.col("kind") == F.lit(kind)
    return F.max_by(F.struct("offset", "value"), F.when(is_it, F.col("offset")))
