"""`export`: writes all pending schedules to a table, from the changelogs.

Workers may run meanwhile. The table contains each partition of a changelog as of one instant (see `snapshots`), with
committed records only; later changes are not included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from light_scheduler.model import TopicNames

from .changelog import decoded
from .job import SILENT, Cluster, Progress, configured
from .replacing import require_replaceable
from .schedule_table import COLUMNS, IN_PYTHON, rows_of
from .snapshots import snapshot, unmarked_if_lost
from .tables import write_table
from .topics import require_topic


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an export: the application's commands topics, and the table's path and format."""

    table: str
    cluster: Cluster
    app_id: str
    commands_topics: tuple[str, ...]
    format: str = "parquet"


@dataclass(frozen=True)
class ExportSummary:
    """The number of schedules in the table, and the bytes of their states (column `record`)."""

    schedules: int
    table: str
    bytes: int = field(default=0, compare=False)

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        return [f"{self.schedules:,} schedules in {self.table}"]


def main(spark: SparkSession, options: ExportOptions, progress: Progress = SILENT) -> ExportSummary:
    """Write the table, replacing an existing one. Raises JobError if a changelog cannot be read."""
    require_replaceable(spark, options.table, options.format)
    names = TopicNames(options.app_id)
    count = Observation()
    with unmarked_if_lost(spark, options.table, options.format), configured(spark, IN_PYTHON), ExitStack() as kept:
        with progress.phase("Reading changelogs"):
            parts = [
                kept.enter_context(pending_schedules(spark, options.cluster, names, topic))
                for topic in options.commands_topics
            ]
        with progress.phase("Exporting schedules"):
            counts = F.count(F.lit(1)).alias("schedules"), F.sum(F.octet_length("record")).alias("bytes")
            table = reduce(DataFrame.unionByName, parts).observe(count, *counts)
            write_table(table, options.table, options.format)
    return ExportSummary(count.get["schedules"], options.table, count.get["bytes"] or 0)


@contextmanager
def pending_schedules(
    spark: SparkSession, cluster: Cluster, names: TopicNames, commands_topic: str
) -> Iterator[DataFrame]:
    """Yield the pending schedules of a commands topic, with the columns of `schedule_table`. Raises as `snapshot`."""
    changelog = names.changelog(commands_topic)
    partitions = require_topic(cluster, changelog)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = zip(batch.column("schedule").to_pylist(), batch.column("progress").to_pylist(), strict=True)
            entries = [decoded(schedule, progress) for schedule, progress in records]
            yield rows_of(entries, commands_topic, batch.column("partition"), partitions)

    with snapshot(spark, cluster, changelog) as last:
        yield last.where("schedule is not null").mapInArrow(rows, COLUMNS)
