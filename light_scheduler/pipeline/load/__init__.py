"""`load`: sends tables of schedules as commands, exactly once.

Rows are read, checked by the rules of workers, and written in one pass. Refused rows go to a table with the column and
the reason. If a load is interrupted, run it again: it continues where it stopped. Repeating a completed load adds
nothing (see `task`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StructType

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import require_pattern, without_globs
from light_scheduler.pipeline.job import SILENT, Progress, configured
from light_scheduler.pipeline.replacing import require_replaceable
from light_scheduler.pipeline.tables import catalog_name, located, read_table, require_place
from light_scheduler.pipeline.topics import require_topic

from .by_name import format_of
from .cancels import CancelTask, cancel
from .checkpoints import CONFIG, configured_checkpoint
from .columns import Column as Meaning
from .columns import check_constants, columns_of
from .csv_headers import comparing_headers
from .csv_quotes import is_checked as has_quotes
from .csv_quotes import require_closed, require_closed_headers
from .files import Guard
from .folder_columns import require_same_in_table
from .following import repeat
from .job_marks import JobMarks
from .malformed import WHY, passing_on, why_in_refused, without_text
from .marks import Marks, key_of
from .one_value import is_checked, require_one_value
from .options import LoadOptions
from .places import require_apart
from .records import RecordMaker
from .sending import PlacedRows, placed, send
from .streaming import load_stream
from .summary import LoadSummary
from .task import PIECE_BYTES, REFUSED, LoadTask
from .unread_files import require_all_read
from .versions import TableMark, TableVersion

__all__ = ["LoadOptions", "LoadSummary", "main"]

_MERGED = {"parquet": {"mergeSchema": "true"}}
"""A table has the columns of all its files, as with other formats, not only those of the one that Spark looks at."""

_CONFIGS = {
    # Pieces of files are the same on every machine, whatever its number of cores.
    "spark.sql.files.maxPartitionBytes": str(PIECE_BYTES),
    "spark.sql.files.minPartitionNum": "1",
    # A task for each piece: small files with many rows are loaded in parallel like large ones.
    "spark.sql.files.openCostInBytes": str(PIECE_BYTES),
    # A batch is a transaction, and is several times in the memory of a Python process.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # Columns in the names of folders are text: 007 in `tenant=007` is not a number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def main(spark: SparkSession, options: LoadOptions, progress: Progress = SILENT) -> LoadSummary:
    """Load a table. Raises JobError if the table or the topic cannot be used."""
    check_constants(options.constants)
    if options.every_s is None:
        require_replaceable(spark, options.refused)
    else:
        require_place(spark, options.refused)
    options = replace(options, format=format_of(spark, options.table, options.format))
    if not options.dry_run:  # which needs no broker
        require_topic(options.cluster, options.commands_topic)
        require_topic(options.cluster, options.marks_topic)
    place = "--checkpoint"
    if options.follows_files and options.checkpoint is None and not options.dry_run:
        options, place = replace(options, checkpoint=configured_checkpoint(spark, options)), CONFIG
    _require_apart(spark, options, place)
    marks = None if options.dry_run else JobMarks(options.cluster.options(), options.marks_topic)
    with configured(spark, _CONFIGS), progress.phase("Validating" if options.dry_run else "Loading"):
        if options.every_s is None or options.format != "delta":
            return _load(spark, options, marks)
        loaded: list[LoadSummary] = []
        repeat(lambda: loaded.append(_load(spark, options, marks)), options.every_s, options.stop)
        return reduce(LoadSummary.plus, loaded)


def _require_apart(spark: SparkSession, options: LoadOptions, place: str) -> None:
    """Raise JobError if the load writes where it reads, or if that cannot be determined. `place` names its
    checkpoint."""
    is_literal = options.format == "delta" or catalog_name(options.table) is not None
    if not is_literal:
        require_pattern(options.table)
    by_path = {
        name: located(spark, path)
        for name, path in (("--refused", options.refused), (place, options.checkpoint))
        if path is not None and catalog_name(path) is None
    }
    if by_path:
        table = located(spark, options.table)
        table = without_globs(table) if is_literal else table
        require_apart(table, by_path, None if options.every_s is not None else "--refused")


def _load(spark: SparkSession, options: LoadOptions, marks: Marks | None) -> LoadSummary:
    goes_on = {} if options.every_s is None else passing_on(options.format, options.reading)
    merged = _MERGED.get(options.format, {})
    table = read_table(spark, options.table, options.format, {**merged, **options.reading, **goes_on})
    if headers := comparing_headers(options.format, options.reading, table.columns):
        goes_on |= headers
        table = read_table(spark, options.table, options.format, {**options.reading, **goes_on})
    schema, why = without_text(table.schema), None
    is_refused = tuple(table.columns) == REFUSED  # written by an earlier load: none of its rows was sent
    if is_refused:
        if options.every_s is not None:
            raise JobError(f"{options.table} is a table of refused rows: load it without --continuous")
        schema = table.select("content.*").schema  # the files have the columns of the loads that added them
        table = table.select("content.*", "_metadata", why_in_refused().alias(WHY))
        why = F.col(WHY)
    columns = _columns(spark, options, schema)
    if not columns:
        raise JobError(f"{options.table} has no columns to load: put a file there that has rows, and ignore fewer")
    maker = RecordMaker(columns, options.constants, options.limits)
    connection = None if marks is None else options.cluster.options()
    task = LoadTask(
        maker, options.commands_topic, options.name, options.marks_topic, connection, sends_past=options.sends_past
    )
    folders = require_all_read(table, options.table, options.format, options.reading)
    require_same_in_table(
        table, options.table, options.format, {**merged, **options.reading, **goes_on}, options.ignored
    )
    if options.every_s is None:
        _require_rows_apart(spark, options, len(schema))
    if marks is None or is_refused:
        return _load_rows(options, task, schema, [table], why=why)
    if options.follows_files:
        return load_stream(spark, options, task, schema, marks, goes_on, folders)
    marks.read_on()
    if options.format != "delta" or _names_version(options.reading):
        files = table.inputFiles()
        guard = Guard.of(task.scope, located(spark, options.table), files, marks)
        of_files = () if options.format == "delta" else files  # equal rows of a version are all sent
        return _load_rows(options, task.guarding(guard), schema, [table], of_files)
    delta = TableVersion.at(spark, located(spark, options.table), options.reading)
    return _load_versions(delta, options, task, schema, marks)


def _columns(spark: SparkSession, options: LoadOptions, schema: StructType) -> tuple[Meaning, ...]:
    """Return the meaning of each column. Raises JobError; for an unclosed CSV header if that caused an unknown
    column."""
    try:
        return columns_of(schema, options.constants, options.ignored)
    except JobError:
        if has_quotes(options.format, options.reading):
            require_closed_headers(spark, options.table, options.reading, len(schema))
        raise


def _require_rows_apart(spark: SparkSession, options: LoadOptions, columns: int) -> None:
    """Raise JobError if a reader would lose rows of text: further values on a line, or text after an open quote."""
    if is_checked(options.format, options.reading):
        require_one_value(spark, options.table, options.reading)
    if has_quotes(options.format, options.reading):
        require_closed(spark, options.table, options.reading, columns)


def _load_versions(
    delta: TableVersion,
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    marks: Marks,
) -> LoadSummary:
    """Load the rows of a Delta table that are new since the version that is marked as loaded, and mark the current
    version."""
    key = key_of("delta", *task.scope, delta.id)
    mark = marks.get(key, TableMark) or _mark_before(delta, marks, task) or TableMark()
    delta.require_loaded(mark)
    summary = LoadSummary(0, 0, 0, 0, options.refused)
    # A run first completes what the last one began: between other versions, rows would be split into other batches.
    while mark.begun is not None or mark.loaded != delta.version:
        if mark.begun is None:
            mark = TableMark(mark.loaded, delta.version, mark.commit, delta.id)
            marks.write(key, mark)
        assert mark.begun is not None
        parts = delta.between(mark.loaded, mark.begun)
        guard = Guard.of(task.scope, delta.path, [file for part in parts for file in part.inputFiles()], marks)
        if mark.loaded is not None:
            guard = guard.between(mark.scope, restores=delta.log.restores(mark.loaded, mark.begun))
        # Later loads do not refuse these rows again, so those of earlier loads stay in the table, too.
        to_add = mark.loaded is not None or summary.refused > 0
        loaded = _load_rows(options, task.guarding(guard).between(mark.scope), schema, parts, to_add=to_add)
        summary = summary.plus(loaded)
        if loaded.refused and options.refused is None:  # for a run with a table for refused rows
            break
        if options.cancels_deleted and mark.loaded is not None:
            cancelled = _cancel_deleted(delta, mark, task)
            summary = replace(summary, cancelled=summary.cancelled + cancelled)
        mark = TableMark(loaded=mark.begun, commit=delta.log.digest(mark.begun))
        marks.write(key, mark)
    return summary


def _cancel_deleted(delta: TableVersion, mark: TableMark, task: LoadTask) -> int:
    """Cancel the schedules of rows that were deleted between the versions of a mark. Return their number."""
    assert mark.loaded is not None, "a table that is loaded whole has lost no rows"
    assert mark.begun is not None, "its load is at work"
    found = delta.gone(mark.loaded, mark.begun)
    if found is None or task.connection is None:
        return 0
    scope = (*task.scope, mark.table or delta.id, mark.loaded, mark.begun)
    return cancel(*found, task.maker, CancelTask(task.topic, task.name, task.marks_topic, task.connection, scope))


def _mark_before(delta: TableVersion, marks: Marks, task: LoadTask) -> TableMark | None:
    """Return the mark of the table that this one replaced."""
    found = (marks.get(key_of("delta", *task.scope, id), TableMark) for id in delta.earlier_ids())
    return next((mark for mark in found if mark is not None), None)


def _load_rows(
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    parts: list[DataFrame],
    files: Sequence[str] = (),
    *,
    why: Column | None = None,
    to_add: bool = False,
) -> LoadSummary:
    """Load parts of a table with a schema; earlier versions of it may have had fewer columns.

    `files` are as in `PlacedRows`. `why` is the column with the reason why a row is malformed. The table of refused
    rows is replaced, or extended if `to_add`.
    """
    if not parts:
        return LoadSummary(0, 0, 0, 0, options.refused)
    fields = [schema[column.name] for column in task.maker.columns]
    rows = reduce(DataFrame.unionByName, [placed(part, fields, why) for part in parts])
    return send(PlacedRows(rows, fields, files), task, options.refused, to_add=to_add or options.every_s is not None)


def _names_version(reading: Mapping[str, str]) -> bool:
    """Return whether the options name a version of the table, so that there is no search for new rows."""
    return not {"versionasof", "timestampasof"}.isdisjoint(name.lower() for name in reading)
