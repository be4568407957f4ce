"""Cells of CSV whose quote is not closed, or whose line ends otherwise than the first: what follows would be taken for
their text, up to the end of the file.

The row may have as many cells as the header all the same, so Spark's reader tells nobody. So the text of each row is
looked at, cut as the reader cuts it: a cell that begins with a quote has to end with one. The reader passes on the text
of malformed rows only. It is told of one column more than there are, so that all are malformed, and of no header, so
that the header is a row like all others.

The reader takes for the end of a row what ends the first line of a file. Where lines end otherwise, it takes the next
row for the text of a cell as well, or a carriage return at the end of its text.

Where such a row ends is not known, nor which rows are in it. A load that ends stops before it sends anything. One that
goes on refuses the file.
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
"""The option that says what a cell is in which text follows the closing quote: who gives it wants no check."""

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
    """Return whether the quotes of files of this format, read with these options, are looked at."""
    options = lowered(reading)
    # Without multiLine, each line is a row: no other one is taken for its text.
    holds_lines = options.get("multiline", "true").lower() == "true"
    return format == "csv" and holds_lines and options.get("quote", QUOTE) not in NONE and _HANDLING not in options


def require_closed(spark: SparkSession, path: str, reading: Mapping[str, str], columns: int) -> None:
    """Raise JobError if a row of CSV files, which have so many columns or fewer, has a cell without its end."""
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
    """Raise JobError if the header of a CSV file has a cell without its end: its columns are not those of the file."""
    if not _has_header(reading):
        return
    rows = _rows(spark, [located(spark, path)], reading, columns).withColumn("number", F.monotonically_increasing_id())
    first = rows.groupBy("file").agg(F.min_by(F.struct("shown", "why"), "number").alias("header"))
    found = first.where("header.why is not null").select("file", "header.*").orderBy("file").first()
    if found is not None:
        raise _open_header(found)


def unclosed(spark: SparkSession, files: Sequence[str], reading: Mapping[str, str], columns: int) -> dict[str, str]:
    """Return those of some files that have such a row, with what is wrong with it and its first characters."""
    if not files:
        return {}
    with listing_in_few_tasks(spark):
        paths = [without_globs(unquote(file)) for file in files]
        rows = _unclosed(spark, paths, reading, columns)
        said = F.concat("why", F.lit(", so no row of this file is sent now: "), "shown")
        return dict(rows.groupBy("file").agg(F.first(said)).collect())


def refused_files(spark: SparkSession, found: Mapping[str, str]) -> DataFrame:
    """Return (file, block, field, reason) of files of which no row is sent, given what `unclosed` has found."""
    return spark.createDataFrame([(file, 0, FIELD, said) for file, said in found.items()], _REFUSED)


def _open_header(found: Row) -> JobError:
    return JobError(
        f"{found.file} has a header line in which {found.why}, so rows are taken for the name of a column: "
        f"{found.shown}. {_TO_DO[found.why]}"
    )


def _unclosed(spark: SparkSession, paths: list[str], reading: Mapping[str, str], columns: int) -> DataFrame:
    """Return (file, shown, why) of rows that may hold others."""
    return _rows(spark, paths, reading, columns).where("why is not null")


def _rows(spark: SparkSession, paths: list[str], reading: Mapping[str, str], columns: int) -> DataFrame:
    """Return (file, shown, why) of rows, the headers among them, and what is wrong with them; null: nothing."""
    ours = {
        **{"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT, "header": "false"},
        **{"enforceSchema": "true", "columnPruning": "false"},
    }
    kept = {name: value for name, value in reading.items() if name.lower() not in map(str.lower, ours)}
    cells = [f"{_CELL}{number}" for number in range(columns + 1)]
    schema = ", ".join(f"{name} string" for name in (*cells, _TEXT))
    reader = spark.read.format("csv").schema(schema).options(**{**reading_options("csv"), **kept, **ours})
    # The reader gives no text if nothing but the text is asked for.
    is_read = F.coalesce(F.length(cells[0]), F.lit(0)) >= 0
    file = F.col("_metadata.file_path").alias("file")
    shown = F.substring(F.coalesce(F.col(_TEXT), F.concat_ws(",", *cells)), 1, _MOST_SHOWN).alias("shown")
    return reader.load(paths).where(is_read).select(file, shown, _why(reading, cells).alias("why"))


def _why(reading: Mapping[str, str], cells: Sequence[str]) -> Column:
    """Return what is wrong with a row of these cells and its text; null: nothing."""
    text, quote = F.col(_TEXT), re.escape(lowered(reading).get("quote", QUOTE))
    # The reader gives no text of a row with that one cell more, which may hold other rows if it has a line break, or
    # begins with a quote.
    may_hold_rows = F.exists(F.array(*cells), lambda cell: cell.rlike(f"[\r\n]|^{quote}"))
    # The text ends before the line break, and before the carriage return in front of it, which is in a cell.
    is_cut = _returns_in(F.concat_ws("", *cells)) > _returns_in(text)
    is_whole = text.rlike(row_pattern(reading)) & ~is_cut
    of_text = F.when(is_whole, None).when(text.rlike(row_pattern(reading, has_breaks=True)), _ENDS).otherwise(_OPEN)
    return F.when(text.isNull(), F.when(may_hold_rows, _EITHER)).otherwise(of_text)


def _returns_in(text: Column) -> Column:
    """Return how many carriage returns are in a text."""
    return F.length(F.regexp_replace(text, "[^\r]+", ""))


def _has_header(reading: Mapping[str, str]) -> bool:
    return lowered(reading).get("header", "true").lower() == "true"
