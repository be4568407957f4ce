"""`load`: tables of schedules to commands, exactly once.

Rows are read, held to the rules that workers have, and written, in one pass; what is refused goes to a table with the
column and the reason. A load that was interrupted is simply run again: it goes on where it was, and one that is done
adds nothing (see `task`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import SILENT, Cluster, Progress, configured
from light_scheduler.pipeline.kafka.options import WriteOptions
from light_scheduler.pipeline.tables import read_table, write_table
from light_scheduler.pipeline.topics import require_topic

from .columns import check_constants, columns_of
from .records import RecordMaker
from .task import PIECE_BYTES, REPORT, LoadTask

_CONFIGS = {
    # Pieces of files that are the same on every machine, whatever its number of cores.
    "spark.sql.files.maxPartitionBytes": str(PIECE_BYTES),
    "spark.sql.files.minPartitionNum": "1",
    # A task for each piece: small files, which many rows fit into, are loaded side by side like large ones.
    "spark.sql.files.openCostInBytes": str(PIECE_BYTES),
    # A batch is a transaction, and is in the memory of a Python process several times.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What is loaded, and where to.

    `refused` is the path of the table of rows that are refused, written as Parquet. `constants` are fields that are the
    same for all rows, `ignored` columns that mean nothing. Marks are kept under `name`: another one loads again what
    has been loaded. With `dry_run` rows are validated only.
    """

    table: str
    cluster: Cluster
    commands_topic: str
    format: str = "parquet"
    refused: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    name: str = "light-scheduler-load"
    dry_run: bool = False


@dataclass(frozen=True)
class LoadSummary:
    """How many rows there are, how many were written by this run, by earlier ones, and refused."""

    rows: int
    sent: int
    sent_before: int
    refused: int
    refused_table: str | None

    @property
    def failed(self) -> bool:
        return self.refused > 0

    def lines(self) -> list[str]:
        lines = [f"{self.rows:,} rows: {self.sent:,} sent, {self.sent_before:,} sent before, {self.refused:,} refused"]
        if self.refused and self.refused_table:
            lines.append(f"What was refused, and why, is in {self.refused_table}")
        elif self.refused:
            lines.append("To see what was refused, and why, run it again with a table for it: nothing is sent twice")
        return lines


def main(spark: SparkSession, options: LoadOptions, progress: Progress = SILENT) -> LoadSummary:
    """Load a table. Raises JobError if the table or the topic cannot be used."""
    check_constants(options.constants)
    if not options.dry_run:  # which needs no broker
        require_topic(options.cluster, options.commands_topic)
    with configured(spark, _CONFIGS), progress.phase("Validating" if options.dry_run else "Loading"):
        return _load(spark, options)


def _load(spark: SparkSession, options: LoadOptions) -> LoadSummary:
    table = read_table(spark, options.table, options.format, options.reading)
    columns = columns_of(table.schema, options.constants, options.ignored)
    if not columns:
        raise JobError(f"{options.table} has no columns")
    maker = RecordMaker(columns, options.constants, options.limits)
    sink = (
        None if options.dry_run else WriteOptions.parse({**options.cluster.options(), "topic": options.commands_topic})
    )
    task = LoadTask(maker, options.commands_topic, options.name, sink)
    counts = Observation()
    report = _placed(table, [column.name for column in columns]).mapInArrow(task, REPORT)
    report = report.observe(counts, *(F.sum(name).alias(name) for name in ("rows", "sent", "refused")))
    refused = report.where("reason is not null").select("file", "block", "row", "field", "reason", "content")
    if options.refused is None:
        refused.write.format("noop").mode("overwrite").save()
    else:
        write_table(refused, options.refused, "parquet")
    found = {name: count or 0 for name, count in counts.get.items()}
    rows, sent, turned_down = found["rows"], found["sent"], found["refused"]
    before = 0 if options.dry_run else rows - sent - turned_down
    return LoadSummary(rows, 0 if options.dry_run else sent, before, turned_down, options.refused)


def _placed(table: DataFrame, names: list[str]) -> DataFrame:
    """Return the columns of a table, and those that say which piece of which file a row is from."""
    return table.select(
        *(F.col(f"`{name}`") for name in names),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_size").alias("_size"),
        F.unix_millis("_metadata.file_modification_time").alias("_modified"),
        F.col("_metadata.file_block_start").alias("_block"),
    )
