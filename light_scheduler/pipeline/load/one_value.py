"""JSON lines with more than one value. Spark's reader uses the first, and silently skips the rest.

So the text of the files is checked in addition to the rows. A line is put into a list together with a mark: if the list
has two items, and the mark is the last one, the line is one value. Most lines need no such parse: a single object
without brackets in it is one value.

A load that runs once stops before it sends anything. A continuous load sends the row that was read, and refuses the
rest.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import located

from .malformed import FIELD, malformed_texts

_ONE_OBJECT = r"^\s*(\{[^{}\[\]]*\}\s*)?$"
"""A single object without brackets in it, or nothing at all."""

_MOST_SHOWN = 500
_PASSED_OVER = r"[,\s\x00\x1a\u00a0]+$"
"""Characters after a value that the reader may skip without losing data."""

_MOST_BYTES = 16 << 20
"""Maximum size of a file that is read as one text, with `multiLine`: a larger one may not fit into memory together with
its items."""

_LINE = "_line_of_text"
"""Name of the text's column, which no folder `name=value` has."""

_OF_OTHER_BYTES = frozenset({"encoding", "charset"})
"""JSON reader options that a text reader lacks: only UTF-8 can be checked."""


def is_checked(format: str, reading: Mapping[str, str]) -> bool:
    """Return whether the text of files of this format, read with these options, can be checked."""
    return format == "json" and _OF_OTHER_BYTES.isdisjoint(map(str.lower, reading))


def require_one_value(spark: SparkSession, path: str, reading: Mapping[str, str]) -> None:
    """Raise JobError if a line of JSON files (a whole file, with `multiLine`) has more than the value that is read."""
    shown = F.substring("text", 1, _MOST_SHOWN).alias("shown")
    found = _with_more(_text(spark, [located(spark, path)], reading), reading).select("file", shown).first()
    if found is not None:
        raise JobError(
            f"{found.file} has more than one JSON value where Spark reads only the first: {found.shown}. "
            "Write each row on a line of its own, without multiLine, and run the load again"
        )


def rests_of_lines(spark: SparkSession, reading: Mapping[str, str], files: Sequence[str]) -> DataFrame:
    """Return (file, block, text, field, reason) of the lines of these files that have more than the value that is read.

    Some of these lines are not read at all; see `malformed_lines`.
    """
    paths = [without_globs(unquote(file)) for file in files]
    lines = _with_more(_text(spark, paths, reading), reading)
    reason = F.concat(F.lit("only the first JSON value of this line was read: "), F.col("text"))
    return lines.select("*", F.lit(FIELD).alias("field"), reason.alias("reason"))


def malformed_lines(report: DataFrame) -> DataFrame:
    """Return (file, text) of the lines that tasks refused as malformed, which are refused as a whole."""
    return malformed_texts(report).withColumn("text", _bare("text"))


def _text(spark: SparkSession, paths: list[str], reading: Mapping[str, str]) -> DataFrame:
    """Return (file, block, text) of the lines of files, or of whole files with `multiLine` unless they are too
    large."""
    options = {name.lower(): value for name, value in reading.items()}
    is_whole = options.get("multiline", "false").lower() == "true"
    reader = spark.read.schema(f"{_LINE} string").format("text").options(**reading, wholetext=is_whole)
    texts = reader.load(paths)
    if is_whole:
        texts = texts.where(F.col("_metadata.file_size") <= _MOST_BYTES)
    place = F.col("_metadata.file_path").alias("file"), F.col("_metadata.file_block_start").alias("block")
    return texts.select(*place, _bare(_LINE).alias("text"))


def _bare(text: str) -> Column:
    """Return a text without ignored characters before and after a value, and with U+FFFD for invalid UTF-8."""
    return F.regexp_replace(F.regexp_replace(F.make_valid_utf8(text), "^\ufeff", ""), _PASSED_OVER, "")


def _with_more(lines: DataFrame, reading: Mapping[str, str]) -> DataFrame:
    """Return the lines from which a reader takes one value, but which have more."""
    syntax = {name: value for name, value in reading.items() if name.lower().startswith("allow")}
    mark = uuid.uuid4().hex

    def items(text: Column) -> Column:
        return F.from_json(text, "array<string>", syntax)

    whole = items(F.concat(F.lit("["), F.col("text"), F.lit(f'\n,"{mark}"]')))
    is_one = (F.size(whole) == 2) & (F.get(whole, 1) == mark)
    is_read = F.coalesce(F.from_json("text", "map<string,string>", syntax).isNotNull(), F.lit(False)) | F.coalesce(
        items(F.col("text")).isNotNull(), F.lit(False)
    )
    return lines.where(~F.col("text").rlike(_ONE_OBJECT) & is_read & ~F.coalesce(is_one, F.lit(False)))
