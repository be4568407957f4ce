"""The job `archive`: copies topics to a lake table, record by record.

One streaming query reads all topics and appends to one Delta table. Its checkpoint is inside the table's folder, so
that table and position always belong together. Two facts make it exactly once. A micro-batch always has the same
offsets when it is run again, since they are stored before it runs. And Delta stores the query and number of each
micro-batch in the commit of its rows (`txn`), and skips a micro-batch that it has. A kill can leave files that no
commit names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from light_scheduler.errors import JobError
from light_scheduler.model import DEFAULT_TENANT, TENANT_NAME
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND

from .job import SILENT, Cluster, Progress
from .losses import LossWatch, noting_losses, position, position_in
from .tables import catalog_name, described, located
from .topics import require_topic, stream_topics

KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, `partition` INT, `offset` BIGINT, `timestamp` TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, date DATE"
)
_LATER = {"timestampType": "int"}
"""Columns that older archives may lack, with their types; null there. Add columns of new releases here."""

_PARTITIONS = ("topic", "date")
_TENANT_HEADERS = ("dead-letter-tenant", "schedule-tenant")

_CHECKPOINT = "_checkpoint"
"""Delta ignores folders whose names begin with an underscore."""

_LOOK_EVERY_S = 1
_LOOK_FOR_LOSS_EVERY_S = 10
_MOST_COMMITS = 1_000
"""Maximum number of commits to search for the last compaction. If it is not found, the whole table is compacted."""

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


@dataclass(frozen=True)
class ArchiveOptions:
    """Options of an archive of `topics` in the Delta table at `path`.

    `batch` is the approximate number of records in a micro-batch. Without `continuous`, the job ends at the records
    that existed when it began; with it, it runs until `stop` is set. Small files of days with new records are compacted
    at the end, or every `compact_every` seconds. After that, with `vacuum`, files that left the table at least `vacuum`
    ms ago are deleted. With `allow_data_loss`, the job continues when records were deleted before it read them or a
    topic was created again, and records the loss.

    With `by_tenant`, a new table is also partitioned by tenant. `json_topics` are topics whose records name the tenant
    in JSON, as history and results do; in other topics, it is a header.
    """

    cluster: Cluster
    topics: Sequence[str]
    path: str
    batch: int = 500_000
    continuous: bool = False
    compact_every: int = 600
    vacuum: int | None = None
    allow_data_loss: bool = False
    by_tenant: bool = False
    json_topics: Collection[str] = ()
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class ArchiveSummary:
    """Number of records and batches added, bytes of added files, and the current size of the table."""

    path: str
    records: int
    batches: int
    files: int
    bytes: int
    added_bytes: int = field(default=0, compare=False)

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        return [
            f"{self.records:,} records added in {self.batches:,} batches",
            f"{self.path} has {self.files:,} files, {self.bytes:,} bytes",
        ]


def main(spark: SparkSession, options: ArchiveOptions, progress: Progress = SILENT) -> ArchiveSummary:
    """Archive topics. Raises JobError if a topic does not exist, or if the folder contains something else."""
    if (name := catalog_name(options.path)) is not None:
        _create(spark, name, options)
    options = replace(options, path=located(spark, options.path).rstrip("/"))
    for topic in options.topics:
        require_topic(options.cluster, topic)
    before = _version(spark, options.path)
    with _losses(spark, options) as losses, progress.phase("Archiving"):
        query = _start(spark, options)
        try:
            _wait(spark, query, options, losses)
        finally:
            query.stop()
        if losses is not None:
            losses.end(position_in(query.lastProgress))
    if _version(spark, options.path) is None:  # the topics were empty
        return ArchiveSummary(options.path, 0, 0, 0, 0)
    with progress.phase("Compacting"):
        compact(spark, options.path)
    if options.vacuum is not None:
        with progress.phase("Deleting old files"):
            DeltaTable.forPath(spark, options.path).vacuum(options.vacuum / _HOUR_MS)
    return _summary(spark, options.path, before)


def read_archive(spark: SparkSession, path: str, start: int = 0, end: int | None = None) -> DataFrame:
    """Return an archive with the columns of a Kafka table. Raises JobError if there is none.

    Only reads files of days between `start` and `end` (UTC epoch ms).
    """
    try:
        table = spark.read.format("delta").load(located(spark, path))
        table = table.where(F.col("date") >= _day(start)) if start else table
        table = table if end is None else table.where(F.col("date") <= _day(end))
        lacking = {*_LATER} - {*table.columns}
        return table.select(*(F.lit(None).cast(_LATER[n]).alias(n) if n in lacking else n for n in KAFKA_COLUMNS))
    except AnalysisException as error:
        raise JobError(f"{path} is not an archive: create one with `light-scheduler pipeline archive`") from error


def compact(spark: SparkSession, path: str) -> None:
    """Merge small files of days with new records since the last compaction, if the table exists.

    The replaced files stay until they are vacuumed.
    """
    if (version := _version(spark, path)) is None:
        return
    table = DeltaTable.forPath(spark, path)
    found = table.history(_MOST_COMMITS).where("operation = 'OPTIMIZE'").agg(F.max("version").alias("last")).first()
    if found is None or found["last"] is None:
        table.optimize().executeCompaction()
    elif (first := _first_day(spark, path, range(found["last"] + 1, version + 1))) is not None:
        table.optimize().where(f"date >= '{first}'").executeCompaction()


def _first_day(spark: SparkSession, path: str, versions: range) -> str | None:
    """Return the earliest day to which these commits have added files."""
    if not versions:
        return None
    logs = [f"{path}/_delta_log/{version:020}.json" for version in versions]
    added = spark.read.schema("add struct<partitionValues:struct<date:string>>").json(logs)
    first = added.agg(F.min("add.partitionValues.date").alias("day")).first()
    return None if first is None else first["day"]


def _day(instant: int) -> Column:
    return F.date_from_unix_date(F.lit(instant // _DAY_MS))


def _date() -> Column:
    """Return the day of a record in UTC, whatever the session's time zone."""
    return F.date_from_unix_date(F.floor(F.unix_millis("timestamp") / _DAY_MS).cast("int"))


def _create(spark: SparkSession, name: str, options: ArchiveOptions) -> None:
    """Create a table of the catalog unless it exists. Raises JobError if it exists but is not a Delta table."""
    tenant, more = (", tenant STRING", ", tenant") if options.by_tenant else ("", "")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({_SCHEMA}{tenant}) USING delta PARTITIONED BY (topic, date{more})")
    if (provider := described(spark, name).provider) != "delta":
        raise JobError(f"{name} is a table of {provider or 'an unknown format'}, and an archive is one of Delta Lake")


def _partitions(spark: SparkSession, options: ArchiveOptions) -> tuple[str, ...]:
    """Return the columns by which the table is, or will be, partitioned. Raises JobError if that conflicts with the
    options."""
    wanted = (*_PARTITIONS, "tenant") if options.by_tenant else _PARTITIONS
    if _version(spark, options.path) is None:
        if position(spark, f"{options.path}/{_CHECKPOINT}") is not None:
            raise JobError(
                f"{options.path} has the checkpoint of an archive whose table is gone: the job would go on where that "
                f"one ended. Archive into another path, or delete {options.path}/{_CHECKPOINT} to begin anew"
            )
        return wanted
    detail = DeltaTable.forPath(spark, options.path).detail().first()
    assert detail is not None, "a table has details"
    found = tuple(detail["partitionColumns"])
    if found[: len(_PARTITIONS)] != _PARTITIONS:
        raise JobError(f"{options.path} has another table of Delta Lake, which is no archive: give another path")
    if options.by_tenant and found != wanted:
        raise JobError(f"{options.path} is partitioned by {', '.join(found)}: archive by tenant into a new table")
    return found


def tenant_of(json_topics: Collection[str]) -> Column:
    """Return the tenant of a record, from its headers or its JSON; the default tenant if there is none."""

    def header(name: str) -> Column:
        named = F.filter("headers", lambda each: each["key"] == name)
        return F.get(named, F.size(named) - 1)["value"].cast("string")

    is_json = F.trim(F.substring_index(F.lower(header(CONTENT_TYPE)), ";", 1)) == JSON_COMMAND.decode()
    in_json = F.get_json_object(F.col("value").cast("string"), "$.tenant")
    in_value = F.when(F.col("topic").isin(list(json_topics)) | F.coalesce(is_json, F.lit(False)), in_json)
    named = F.coalesce(in_value, *map(header, _TENANT_HEADERS))
    # A refused command can name any tenant, and folders are named after it. In the history, an empty tenant stands for
    # none.
    return F.when(named.rlike(f"^({TENANT_NAME.pattern})?$"), named).otherwise(DEFAULT_TENANT)


def _start(spark: SparkSession, options: ArchiveOptions) -> StreamingQuery:
    partitions = _partitions(spark, options)
    records = stream_topics(
        spark,
        options.cluster.bootstrap_servers,
        options.topics,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=options.batch,
        failOnDataLoss=str(not options.allow_data_loss).lower(),
        **options.cluster.client_options(),
    )
    dated = records.select(*KAFKA_COLUMNS).withColumn("date", _date())
    if "tenant" in partitions:
        dated = dated.withColumn("tenant", tenant_of(options.json_topics))
    writer = (
        dated.writeStream.format("delta")
        .queryName("archive")
        .option("checkpointLocation", f"{options.path}/{_CHECKPOINT}")
        .option("mergeSchema", "true")  # archives of older releases get missing columns
        .partitionBy(*partitions)
    )
    writer = writer.trigger(processingTime="1 second") if options.continuous else writer.trigger(availableNow=True)
    return writer.start(options.path)


def _wait(spark: SparkSession, query: StreamingQuery, options: ArchiveOptions, losses: LossWatch | None) -> None:
    """Return when the job should stop. Until then, compact files regularly. Raises the error of a failed query."""
    begun = time.monotonic()
    compact_at, look_at = begun + options.compact_every, begun + _LOOK_FOR_LOSS_EVERY_S
    while not (options.continuous and options.stop.is_set()) and not query.awaitTermination(_LOOK_EVERY_S):
        if losses is not None and time.monotonic() >= look_at:
            losses.look_if_possible(position_in(query.lastProgress))
            look_at = time.monotonic() + _LOOK_FOR_LOSS_EVERY_S
        if options.continuous and time.monotonic() >= compact_at:
            compact(spark, options.path)
            compact_at = time.monotonic() + options.compact_every


def _losses(spark: SparkSession, options: ArchiveOptions) -> AbstractContextManager[LossWatch | None]:
    """Watch for losses if they are allowed. Otherwise the stream fails on them."""
    if not options.allow_data_loss:
        return nullcontext()
    return noting_losses(spark, options.path, f"{options.path}/{_CHECKPOINT}", options.cluster, options.topics)


def _version(spark: SparkSession, path: str) -> int | None:
    """Return the version of the table; None if it does not exist yet."""
    try:
        last = DeltaTable.forPath(spark, path).history(1).first()
    except AnalysisException:
        return None
    return None if last is None else int(last["version"])


def _summary(spark: SparkSession, path: str, before: int | None) -> ArchiveSummary:
    table, first = DeltaTable.forPath(spark, path), 0 if before is None else before + 1
    commits = table.history(max(1, (_version(spark, path) or 0) - first + 1))  # one file per commit: read the new ones
    added = commits.where((F.col("operation") == "STREAMING UPDATE") & (F.col("version") >= first))
    sums = _sum_of("numOutputRows").alias("records"), _sum_of("numOutputBytes").alias("bytes")
    row = added.agg(*sums, F.count("*").alias("batches")).first()
    detail = table.detail().first()
    assert row is not None, "an aggregate has a row"
    assert detail is not None, "a table has details"
    has = detail["numFiles"], detail["sizeInBytes"]
    return ArchiveSummary(path, row["records"], row["batches"], *has, added_bytes=row["bytes"])


def _sum_of(metric: str) -> Column:
    """Return the sum of a metric over commits."""
    return F.coalesce(F.sum(F.element_at("operationMetrics", metric).cast("bigint")), F.lit(0))
