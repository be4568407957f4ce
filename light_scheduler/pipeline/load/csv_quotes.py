"""CSV cells with an unclosed quote, or with other line ends than the first line: the text after them, up to the end of
the file, would be taken for their content.

The row may still have the right number of cells, so Spark's reader does not report it. So the text of each row, as
split by the reader, is checked: a cell that begins with a quote must end with one. The reader only provides the text of
malformed rows. So it is told that there is one more column than there is, which makes all rows malformed, and that
there is no header, so that the header is a row like all others.

The reader takes the end of a file's first line as its row separator. If other lines end differently, it takes the next
row as part of a cell, or a carriage return as the end of its text.

The end of such a row is unknown, and so are the rows in it. A load that runs once stops before it sends anything. A
continuous load refuses the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import located, reading_options

from .csv_rows import NONE, QUOTE, lowered, row_pattern
from .few_tasks import listing_in_few_tasks
from .malformed import FIELD

_HANDLING = "unescapedquotehandling"
"""The option for cells with text after the closing quote. If it is given, the user wants no check."""

_MOST_SHOWN = 500
_CELL = "_light_scheduler_cell_"
_TEXT = "_light_scheduler_text"

_REFUSED = "file string, block bigint, field string, reason string"
_OPEN = "a cell that begins with a quote does not end with one"
_ENDS = "a line does not end as the first line of the file does"
_EITHER = f"{_OPEN}, or {_ENDS}"
_TO_DO = {
    _OPEN: "Close the quote, write each quote within a quoted cell twice, and run the load again",
    _ENDS: "Let all lines end alike, or read each line as a row with --read-option multiLine=false, and run the load "
    "again",
}
_TO_DO[_EITHER] = f"{_TO_DO[_OPEN]}. Or let all lines end alike"


def is_checked(format: str, reading: Mapping[str, str]) -> bool:
    """Return whether the quotes in files of this format, read with these options, are checked."""
    options = lowered(reading)
    # Without multiLine, each line is a row, so no cell can contain another row.
    holds_lines = options.get("multiline", "true").lower() == "true"
    return format == "csv" and holds_lines and options.get("quote", QUOTE) not in NONE and _HANDLING not in options


def require_closed(spark: SparkSession, path: str, reading: Mapping[str, str], columns: int) -> None:
    """Raise JobError if a row of CSV files, with up to `columns` columns, has an unclosed cell."""
    found = _unclosed(spark, [located(spark, path)], reading, columns).first()
    if found is None:
        return
    if _has_header(reading):
        header = _rows(spark, [without_globs(unquote(found.file))], reading, columns).first()
        if header is not None and header.shown == found.shown:
            raise _open_header(found)
    raise JobError(
        f"{found.file} has a row in which {found.why}, so other rows may be taken for its text: {found.shown}. "
        f"{_TO_DO[found.why]}"
    )


def require_closed_headers(spark: SparkSession, path: str, reading: Mapping[str, str], columns: int) -> None:
    """Raise JobError if the header of a CSV file has an unclosed cell: then its columns are not those of the file."""
    if not _has_header(reading):
        return
    rows = _rows(spark, [located(spark, path)], reading, columns).withColumn("number", F.monotonically_increasing_id())
    first = rows.groupBy("file").agg(F.min_by(F.struct("shown", "why"), "number").alias("header"))
    found = first.where("header.why is not null").select("file", "header.*").orderBy("file").first()
    if found is not None:
        raise _open_header(found)


def unclosed(spark: SparkSession, files: Sequence[str], reading: Mapping[str, str], columns: int) -> dict[str, str]:
    """Return the files with such a row, with the problem and the row's first characters."""
    if not files:
        return {}
    with listing_in_few_tasks(spark):
        paths = [without_globs(unquote(file)) for file in files]
        rows = _unclosed(spark, paths, reading, columns)
        said = F.concat("why", F.lit(", so no row of this file is sent now: "), "shown")
        return dict(rows.groupBy("file").agg(F.first(said)).collect())


def refused_files(spark: SparkSession, found: Mapping[str, str]) -> DataFrame:
    """Return (file, block, field, reason) of the files of which no row is sent, given the result of `unclosed`."""
    return spark.createDataFrame([(file, 0, FIELD, said) for file, said in found.items()], _REFUSED)


def _open_header(found: Row) -> JobError:
    return JobError(
        f"{found.file} has a header line in which {found.why}, so rows are taken for the name of a column: "
        f"{found.shown}. {_TO_DO[found.why]}"
    )


def _unclosed(spark: SparkSession, paths: list[str], reading: Mapping[str, str], columns: int) -> DataFrame:
    """Return (file, shown, why) of rows that may contain other rows."""
    return _rows(spark, paths, reading, columns).where("why is not null")


def _rows(spark: SparkSession, paths: list[str], reading: Mapping[str, str], columns: int) -> DataFrame:
    """Return (file, shown, why) of rows, including headers, with the problem of each; null if it has none."""
    ours = {
        **{"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT, "header": "false"},
        **{"enforceSchema": "true", "columnPruning": "false"},
    }
    kept = {name: value for name, value in reading.items() if name.lower() not in map(str.lower, ours)}
    cells = [f"{_CELL}{number}" for number in range(columns + 1)]
    schema = ", ".join(f"{name} string" for name in (*cells, _TEXT))
    reader = spark.read.format("csv").schema(schema).options(**{**reading_options("csv"), **kept, **ours})
    # The reader provides no text if only the text is selected.
    is_read = F.coalesce(F.length(cells[0]), F.lit(0)) >= 0
    file = F.col("_metadata.file_path").alias("file")
    shown = F.substring(F.coalesce(F.col(_TEXT), F.concat_ws(",", *cells)), 1, _MOST_SHOWN).alias("shown")
    return reader.load(paths).where(is_read).select(file, shown, _why(reading, cells).alias("why"))


def _why(reading: Mapping[str, str], cells: Sequence[str]) -> Column:
    """Return the problem of a row, given its cells and its text; null if it has none."""
    text, quote = F.col(_TEXT), re.escape(lowered(reading).get("quote", QUOTE))
    # The reader provides no text for a row with exactly the additional cell. It may contain other rows if it has a line
    # break or begins with a quote.
    may_hold_rows = F.exists(F.array(*cells), lambda cell: cell.rlike(f"[\r\n]|^{quote}"))
    # The text ends before the line break, and before a preceding carriage return that is part of a cell.
    is_cut = _returns_in(F.concat_ws("", *cells)) > _returns_in(text)
    is_whole = text.rlike(row_pattern(reading)) & ~is_cut
    of_text = F.when(is_whole, None).when(text.rlike(row_pattern(reading, has_breaks=True)), _ENDS).otherwise(_OPEN)
    return F.when(text.isNull(), F.when(may_hold_rows, _EITHER)).otherwise(of_text)


def _returns_in(text: Column) -> Column:
    """Return the number of carriage returns in a text."""
    return F.length(F.regexp_replace(text, "[^\r]+", ""))


def _has_header(reading: Mapping[str, str]) -> bool:
    return lowered(reading).get("header", "true").lower() == "true"
