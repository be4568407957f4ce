"""A load of a stream of files: checks each micro-batch for what Spark would leave out, then sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StructType

from light_scheduler.pipeline.tables import located

from .csv_quotes import is_checked as has_quotes
from .csv_quotes import refused_files, unclosed
from .files import Guard, absent, present
from .folder_columns import require_same_in_files, root_of
from .following import follow_files, stream_of, table_of
from .later_files import can_be_checked, require_known
from .malformed import passing_on, why_in_text, with_text
from .marks import Marks
from .one_value import is_checked, malformed_lines, rests_of_lines
from .options import LoadOptions
from .sending import PlacedRows, placed, send
from .summary import LoadSummary
from .task import LoadTask
from .unread_files import files_below, require_new_ones_read
from .unread_files import is_checked as may_leave_out


def load_stream(
    spark: SparkSession,
    options: LoadOptions,
    task: LoadTask,
    schema: StructType,
    marks: Marks,
    goes_on: Mapping[str, str],
    folders: Sequence[str],
) -> LoadSummary:
    """Load the files of a folder, and later ones, until the load is stopped.

    `goes_on` are additional reader options: to pass on malformed rows, and to compare headers. `folders` are the
    columns in the names of folders.
    """
    assert options.every_s is not None, "who does not go on reads a table"
    root = root_of(spark, options.table, options.reading)
    is_json, is_csv = (is_text(options.format, options.reading) for is_text in (is_checked, has_quotes))
    reading = {**options.reading, **goes_on}
    passes_on = bool(passing_on(options.format, options.reading))
    of_files = with_text(schema) if passes_on else schema
    stream = stream_of(spark, options.table, options.format, reading, of_files)
    fields = [schema[column.name] for column in task.maker.columns]
    loaded = [LoadSummary(0, 0, 0, 0, options.refused)]

    def load(rows: DataFrame, files: list[str]) -> None:
        there = files_below(spark, options.table, options.reading)
        files = present(files, there)  # Spark's reader reports missing ones
        if may_leave_out(options.table, options.format, options.reading):
            require_new_ones_read(files, there, root, folders)
        if can_be_checked(options.table, options.format, options.reading):
            require_known(spark, files, options.format, reading, of_files, options.ignored)
        require_same_in_files(spark, files, options.table, options.format, reading, options.ignored)
        refused = unclosed(rows.sparkSession, files, options.reading, len(schema)) if is_csv else {}
        marks.read_on()
        guard = Guard.of(task.scope, located(spark, options.table), there, marks)

        def rests(report: DataFrame) -> DataFrame:
            if not is_json:
                return refused_files(rows.sparkSession, refused)
            found = rests_of_lines(rows.sparkSession, options.reading, files)
            return found.join(malformed_lines(report), ["file", "text"], "left_anti").drop("text")

        whole = absent(files, refused)
        if refused:
            # Do not open them: Spark would fail on their headers.
            rows = table(whole) if whole else rows.where(F.lit(False))
        batch = PlacedRows(rows, fields, whole, rests if (is_json and files) or refused else None)
        loaded.append(send(batch, task.guarding(guard), options.refused, to_add=True))

    def table(files: Sequence[str]) -> DataFrame:
        return placed(table_of(spark, options.table, files, options.format, reading, of_files), fields, why)

    why = why_in_text() if passes_on else None
    follow_files(placed(stream, fields, why), load, options.every_s, options.checkpoint, options.stop)
    return reduce(LoadSummary.plus, loaded)
