"""JSON lines that have more than one value: Spark's reader takes the first, and passes over the rest without a word.

So the text of the files is looked at beside the rows. A line of which a list of it and a mark has two items, the mark
for the last one, is one value. Most lines need no such parse: one object without brackets in it is one value.

A load that ends stops before it sends anything. One that goes on sends the row that was read, and refuses the rest.
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
"""An object without brackets in it, or nothing at all."""

_MOST_SHOWN = 500
_PASSED_OVER = r"[,\s\x00\x1a\u00a0]+$"
"""What may follow a value: the reader passes over it, and nothing is lost."""

_MOST_BYTES = 16 << 20
"""Of a file that is read as one text, with `multiLine`: a larger one may not fit into memory beside its items."""

_LINE = "_line_of_text"
"""The text's column, by a name that no folder `name=value` has."""

_OF_OTHER_BYTES = frozenset({"encoding", "charset"})
"""Options of a reader of JSON that one of text has not: only UTF-8 can be looked at."""


def is_checked(format: str, reading: Mapping[str, str]) -> bool:
    """Return whether the text of files of this format, read with these options, can be looked at."""
    return format == "json" and _OF_OTHER_BYTES.isdisjoint(map(str.lower, reading))


def require_one_value(spark: SparkSession, path: str, reading: Mapping[str, str]) -> None:
    """Raise JobError if a line of JSON files (a file, with `multiLine`) has more than the value that is read."""
    shown = F.substring("text", 1, _MOST_SHOWN).alias("shown")
    found = _with_more(_text(spark, [located(spark, path)], reading), reading).select("file", shown).first()
    if found is not None:
        raise JobError(
            f"{found.file} has more than one JSON value where Spark reads only the first: {found.shown}. "
            "Write each row on a line of its own, without multiLine, and run the load again"
        )


def rests_of_lines(spark: SparkSession, reading: Mapping[str, str], files: Sequence[str]) -> DataFrame:
    """Return (file, block, text, field, reason) of the lines of these files that have more than the value that is read.

    Of some of them, nothing is read: see `malformed_lines`.
    """
    paths = [without_globs(unquote(file)) for file in files]
    lines = _with_more(_text(spark, paths, reading), reading)
    reason = F.concat(F.lit("only the first JSON value of this line was read: "), F.col("text"))
    return lines.select("*", F.lit(FIELD).alias("field"), reason.alias("reason"))


def malformed_lines(report: DataFrame) -> DataFrame:
    """Return (file, text) of the lines that tasks have refused as malformed, which are refused as a whole."""
    return malformed_texts(report).withColumn("text", _bare("text"))


def _text(spark: SparkSession, paths: list[str], reading: Mapping[str, str]) -> DataFrame:
    """Return (file, block, text) of the lines of files, or of whole files with `multiLine` if they are not large."""
    options = {name.lower(): value for name, value in reading.items()}
    is_whole = options.get("multiline", "false").lower() == "true"
    reader = spark.read.schema(f"{_LINE} string").format("text").options(**reading, wholetext=is_whole)
    texts = reader.load(paths)
    if is_whole:
        texts = texts.where(F.col("_metadata.file_size") <= _MOST_BYTES)
    place = F.col("_metadata.file_path").alias("file"), F.col("_metadata.file_block_start").alias("block")
    return texts.select(*place, _bare(_LINE).alias("text"))


def _bare(text: str) -> Column:
    """Return a text without what may come before and after a value, with U+FFFD for what is no UTF-8."""
    return F.regexp_replace(F.regexp_replace(F.make_valid_utf8(text), "^\ufeff", ""), _PASSED_OVER, "")


def _with_more(lines: DataFrame, reading: Mapping[str, str]) -> DataFrame:
    """Return those lines that a reader takes one value of, and which have more."""
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
