"""`load`: tables of schedules to commands, exactly once.

Rows are read, held to the rules that workers have, and written, in one pass; what is refused goes to a table with the
column and the reason. A load that was interrupted is simply run again: it goes on where it was, and one that is done
adds nothing (see `task`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StructField, StructType

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import SILENT, Cluster, Progress, configured
from light_scheduler.pipeline.kafka.options import WriteOptions
from light_scheduler.pipeline.tables import located, read_table, require_place, write_table
from light_scheduler.pipeline.topics import require_topic

from .cancels import CancelTask, cancel
from .columns import check_constants, columns_of
from .files import Guard
from .following import follow_files, repeat, stream_of
from .malformed import WHY, passing_on, why_in_refused, why_in_text, with_text, without_text
from .marks import Marks, key_of
from .records import RecordMaker
from .refusals import RefusedKind, refused_kinds
from .task import COUNTS, PIECE_BYTES, REFUSED, LoadTask, report_schema
from .versions import TableMark, TableVersion

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
    """Options of a load.

    `refused` is the path of a Parquet table for rows that are refused; those of new versions of a Delta table are added
    to it. `constants` are fields with the same value for all rows, `ignored` columns that are skipped. Marks are kept
    in `marks_topic` under `name`: under another name the same rows are loaded again. With `sends_past` one-shots whose
    time has passed are sent even if they may have been sent before. With `cancels_deleted` schedules are cancelled
    whose rows were deleted from a Delta table since its last load. With `dry_run` rows are only validated.

    A load with `every_s` goes on until `stop` is set: it looks for new versions or files each time so many seconds have
    passed, and adds to the table of refused rows. A stream of files keeps its place in `checkpoint`; without one, the
    next load reads all files again.
    """

    table: str
    cluster: Cluster
    commands_topic: str
    marks_topic: str
    format: str = "parquet"
    refused: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    name: str = "light-scheduler-load"
    sends_past: bool = False
    cancels_deleted: bool = False
    dry_run: bool = False
    every_s: float | None = None
    checkpoint: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class LoadSummary:
    """How many rows there are, how many were written by this run, by earlier ones, and refused.

    `repeated_ids` counts rows that have the id of another row of this load: of those with one id, one is scheduled.
    `kinds` are the refusals that a dry run shows. `bytes` is the size of the keys and values of the rows that were not
    refused. `cancelled` counts the schedules that this run cancelled because their rows were deleted.
    """

    rows: int
    sent: int
    sent_before: int
    refused: int
    refused_table: str | None
    repeated_ids: int = 0
    kinds: Sequence[RefusedKind] = ()
    bytes: int = field(default=0, compare=False)
    cancelled: int = 0

    @property
    def failed(self) -> bool:
        return self.refused > 0

    def plus(self, other: LoadSummary) -> LoadSummary:
        """Return the counts of both, of the same load."""
        return LoadSummary(
            self.rows + other.rows,
            self.sent + other.sent,
            self.sent_before + other.sent_before,
            self.refused + other.refused,
            self.refused_table,
            self.repeated_ids + other.repeated_ids,
            (*self.kinds, *other.kinds),
            self.bytes + other.bytes,
            self.cancelled + other.cancelled,
        )

    def lines(self) -> list[str]:
        lines = [f"{self.rows:,} rows: {self.sent:,} sent, {self.sent_before:,} sent before, {self.refused:,} refused"]
        if self.cancelled:
            lines.append(f"{self.cancelled:,} schedules cancelled: their rows were deleted")
        if self.repeated_ids:
            lines.append(
                f"{self.repeated_ids:,} rows have the id of another row: only one row of each id stays scheduled"
            )
        lines += [line for kind in self.kinds for line in kind.lines()]
        if self.refused and self.refused_table:
            lines.append(f"Refused rows with their reasons: {self.refused_table}")
        elif self.refused:
            lines.append(
                "To see the refused rows with their reasons, run the load again with --refused: no row is sent twice"
            )
        return lines


def main(spark: SparkSession, options: LoadOptions, progress: Progress = SILENT) -> LoadSummary:
    """Load a table. Raises JobError if the table or the topic cannot be used."""
    check_constants(options.constants)
    require_place(spark, options.refused)
    if not options.dry_run:  # which needs no broker
        require_topic(options.cluster, options.commands_topic)
        require_topic(options.cluster, options.marks_topic)
    with configured(spark, _CONFIGS), progress.phase("Validating" if options.dry_run else "Loading"):
        if options.every_s is None or options.format != "delta":
            return _load(spark, options)
        loaded: list[LoadSummary] = []
        repeat(lambda: loaded.append(_load(spark, options)), options.every_s, options.stop)
        return reduce(LoadSummary.plus, loaded)


def _load(spark: SparkSession, options: LoadOptions) -> LoadSummary:
    goes_on = {} if options.every_s is None else passing_on(options.format, options.reading)
    table = read_table(spark, options.table, options.format, {**options.reading, **goes_on})
    schema, why = without_text(table.schema), None
    is_refused = tuple(table.columns) == REFUSED  # by an earlier load: nothing of it was sent
    if is_refused:
        table = read_table(spark, options.table, options.format, {"mergeSchema": "true", **options.reading})
        schema = table.select("content.*").schema  # its files have the columns of the loads that added them
        table = table.select("content.*", "_metadata", why_in_refused().alias(WHY))
        why = F.col(WHY)
    columns = columns_of(schema, options.constants, options.ignored)
    if not columns:
        raise JobError(f"{options.table} has no columns")
    maker = RecordMaker(columns, options.constants, options.limits)
    connection = None if options.dry_run else options.cluster.options()
    task = LoadTask(
        maker, options.commands_topic, options.name, options.marks_topic, connection, sends_past=options.sends_past
    )
    if connection is None or is_refused:
        return _load_rows(options, task, schema, [table], why)
    marks = Marks(connection, options.marks_topic)
    if options.every_s is not None and options.format != "delta":
        return _load_stream(spark, options, task, schema, marks, goes_on)
    marks.read_on()
    if options.format != "delta" or _names_version(options.reading):
        guard = Guard.of(task.scope, located(spark, options.table), table.inputFiles(), marks)
        return _load_rows(options, task.guarding(guard), schema, [table])
    client = WriteOptions.parse(connection).client
    delta = TableVersion.at(spark, located(spark, options.table), options.reading)
    return _load_versions(delta, options, task, schema, marks, client)


def _load_stream(
    spark: SparkSession,
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    marks: Marks,
    goes_on: Mapping[str, str],
) -> LoadSummary:
    """Load what is in the files of a folder, and what comes, until the load is to stop.

    `goes_on` are options of a reader that passes on malformed rows, if it is to do that.
    """
    assert options.every_s is not None, "who does not go on reads a table"
    reading = {**options.reading, **goes_on}
    of_files = with_text(schema) if goes_on else schema
    files = stream_of(spark, options.table, options.format, reading, of_files)
    fields = [schema[column.name] for column in task.maker.columns]
    loaded = [LoadSummary(0, 0, 0, 0, options.refused)]

    def load(rows: DataFrame) -> None:
        marks.read_on()
        there = read_table(spark, options.table, options.format, reading, of_files).inputFiles()
        guard = Guard.of(task.scope, located(spark, options.table), there, marks)
        loaded.append(_load_placed(options, task.guarding(guard), fields, rows))

    rows = _placed(files, fields, why_in_text() if goes_on else None)
    follow_files(rows, load, options.every_s, options.checkpoint, options.stop)
    return reduce(LoadSummary.plus, loaded)


def _load_versions(
    delta: TableVersion,
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    marks: Marks,
    client: Mapping[str, Any],
) -> LoadSummary:
    """Load what is new in a Delta table since the version that is marked as loaded, and mark this one."""
    key = key_of("delta", *task.scope, delta.id)
    mark = marks.get(key, TableMark) or _mark_before(delta, marks, task) or TableMark()
    delta.require_loaded(mark)
    summary = LoadSummary(0, 0, 0, 0, options.refused)
    # What a run has begun with is what the next one ends: between other versions, rows are cut into other batches.
    while mark.begun is not None or mark.loaded != delta.version:
        if mark.begun is None:
            mark = TableMark(mark.loaded, delta.version, mark.commit, delta.id)
            marks.write(client, key, mark)
        assert mark.begun is not None
        parts = delta.between(mark.loaded, mark.begun)
        guard = Guard.of(task.scope, delta.path, [file for part in parts for file in part.inputFiles()], marks)
        if mark.loaded is not None:
            guard = guard.between(mark.scope, restores=delta.log.restores(mark.loaded, mark.begun))
        # No later load refuses these rows again: those of earlier ones stay in the table, too.
        to_add = mark.loaded is not None or summary.refused > 0
        loaded = _load_rows(options, task.guarding(guard).between(mark.scope), schema, parts, to_add=to_add)
        summary = summary.plus(loaded)
        if loaded.refused and options.refused is None:  # to be looked at by a run with a table for them
            break
        if options.cancels_deleted and mark.loaded is not None:
            cancelled = _cancel_deleted(delta, mark, task)
            summary = replace(summary, cancelled=summary.cancelled + cancelled)
        mark = TableMark(loaded=mark.begun, commit=delta.log.digest(mark.begun))
        marks.write(client, key, mark)
    return summary


def _cancel_deleted(delta: TableVersion, mark: TableMark, task: LoadTask) -> int:
    """Cancel the schedules of rows that were deleted between the versions of a mark, and return how many."""
    assert mark.loaded is not None, "a table that is loaded whole has lost no rows"
    assert mark.begun is not None, "its load is at work"
    found = delta.gone(mark.loaded, mark.begun)
    if found is None or task.connection is None:
        return 0
    scope = (*task.scope, mark.table or delta.id, mark.loaded, mark.begun)
    return cancel(*found, task.maker, CancelTask(task.topic, task.name, task.marks_topic, task.connection, scope))


def _mark_before(delta: TableVersion, marks: Marks, task: LoadTask) -> TableMark | None:
    """Return how far a table was loaded before it was replaced."""
    found = (marks.get(key_of("delta", *task.scope, id), TableMark) for id in delta.earlier_ids())
    return next((mark for mark in found if mark is not None), None)


def _load_rows(
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    parts: list[DataFrame],
    why: Column | None = None,
    *,
    to_add: bool = False,
) -> LoadSummary:
    """Load parts of a table that has a schema; earlier versions of it may have had fewer columns.

    `why` says for which reason malformed rows are refused.
    The table of refused rows is written anew, unless those of these parts are `to_add` to it.
    """
    if not parts:
        return LoadSummary(0, 0, 0, 0, options.refused)
    fields = [schema[column.name] for column in task.maker.columns]
    rows = reduce(DataFrame.unionByName, [_placed(part, fields, why) for part in parts])
    return _load_placed(options, task, fields, rows, to_add=to_add)


def _load_placed(
    options: LoadOptions, task: LoadTask, fields: list[StructField], rows: DataFrame, *, to_add: bool = False
) -> LoadSummary:
    """Load rows with the columns of `_placed`."""
    report = rows.mapInArrow(task, report_schema(fields)).persist(StorageLevel.DISK_ONLY)
    try:
        found = report.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in COUNTS)).first()
        assert found is not None, "an aggregate has a row"
        if options.refused is not None:
            mode = "append" if to_add or options.every_s is not None else "overwrite"
            write_table(report.where("reason is not null").select(*REFUSED), options.refused, "parquet", mode)
        repeated = _repeated(report)
        kinds = refused_kinds(report) if options.dry_run and found["refused"] else ()
    finally:
        report.unpersist()
    total, sent, turned_down = found["rows"], found["sent"], found["refused"]
    before = 0 if options.dry_run else total - sent - turned_down
    sent = 0 if options.dry_run else sent
    return LoadSummary(total, sent, before, turned_down, options.refused, repeated, kinds, found["bytes"])


def _repeated(report: DataFrame) -> int:
    """Return how many rows have the id of another one, not counting one row of each id."""
    ids = report.select(F.explode("ids").alias("id")).groupBy("id").agg((F.count("*") - 1).alias("more"))
    found = ids.agg(F.coalesce(F.sum("more"), F.lit(0)).alias("repeated")).first()
    assert found is not None, "an aggregate has a row"
    return int(found["repeated"])


def _names_version(reading: Mapping[str, str]) -> bool:
    """Tell whether a version of the table is asked for, so that there is no question what is new."""
    return not {"versionasof", "timestampasof"}.isdisjoint(name.lower() for name in reading)


def _placed(table: DataFrame, fields: list[StructField], why: Column | None = None) -> DataFrame:
    """Return the columns of a table, those that say which piece of which file a row is from, and WHY if it is given."""
    there = set(table.columns)
    return table.select(
        *(F.col(f"`{one.name}`") if one.name in there else _nothing(one) for one in fields),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_block_start").alias("_block"),
        F.col("_metadata.file_size").alias("_size"),
        F.unix_millis("_metadata.file_modification_time").alias("_modified"),
        *([] if why is None else [why.alias(WHY)]),
    )


def _nothing(field: StructField) -> Column:
    return F.lit(None).cast(field.dataType).alias(field.name)
