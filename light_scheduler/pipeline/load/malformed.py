"""Rows that Spark cannot parse: lines that are not JSON, CSV rows with more or fewer cells than the header.

A load that runs once stops at the first of them with an error that shows it, so that the user can fix the file. A
continuous load would be blocked, since it would meet the same row after every start. So its reader passes such rows on
in an additional column, and they are refused like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StringType, StructField, StructType

from .records import Record, Refusal

WHY = "_malformed"
"""The column with the reason why a row is refused without a further check; null: it is checked."""

FIELD = "row"
"""The field to which the refusal is attributed."""

_TEXT = "_light_scheduler_malformed_text"
"""The readers' name for the column with the original text of such a row."""
_FORMATS = ("csv", "json")
_IS = "is malformed: "


def passing_on(format: str, reading: Mapping[str, str]) -> dict[str, str]:
    """Return reader options that pass on malformed rows of a format, unless `reading` already decides about them."""
    if format not in _FORMATS or "mode" in map(str.lower, reading):
        return {}
    return {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT}


def leaving_out(reading: Mapping[str, str]) -> dict[str, str]:
    """Return reader options that leave out the malformed rows which these options would pass on."""
    passes_on = reading.get("columnNameOfCorruptRecord") == _TEXT
    return {**reading, "mode": "DROPMALFORMED"} if passes_on else dict(reading)


def without_text(schema: StructType) -> StructType:
    """Return a schema found by a reader, without the column that the reader may have added."""
    return StructType([field for field in schema.fields if field.name != _TEXT])


def with_text(schema: StructType) -> StructType:
    """Return the schema of a table, with the column that such a reader fills."""
    return StructType([*schema.fields, StructField(_TEXT, StringType())])


def why_in_text() -> Column:
    """Return WHY of rows with the reader's column. Invalid UTF-8 in them becomes U+FFFD, since Python reads it."""
    return F.concat(F.lit(_IS), F.make_valid_utf8(F.col(_TEXT)))


def malformed_texts(report: DataFrame) -> DataFrame:
    """Return (file, text) of the rows that tasks refused as malformed."""
    refused = report.where((F.col("field") == FIELD) & F.startswith("reason", F.lit(_IS)))
    return refused.select("file", F.substring("reason", len(_IS) + 1, 2**31 - 1).alias("text"))


def why_in_refused() -> Column:
    """Return WHY of rows in a table of refused rows: malformed ones have no content there."""
    return F.when(F.col("content").isNull(), F.col("reason"))


def whys(batch: pa.RecordBatch) -> list[str | None]:
    """Return WHY of the rows of a batch; empty if it has no malformed rows."""
    column = batch.column(WHY) if WHY in batch.schema.names else None
    return [] if column is None or column.null_count == len(column) else column.to_pylist()


def refusing(made: list[Record | Refusal], whys: Sequence[str | None]) -> list[Record | Refusal]:
    """Return the outcome of rows, given the outcome if none were malformed."""
    if not whys:
        return made
    return [one if why is None else Refusal(FIELD, why) for one, why in zip(made, whys, strict=True)]
