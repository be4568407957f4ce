"""Rows that Spark cannot parse: lines that are no JSON, CSV rows with more or fewer cells than the header.

A load that ends stops at the first of them with an error that shows it: somebody waits for the load, and mends the
file. A load that goes on would stop for good, because it would meet the same row whenever it is started. So there the
reader passes such rows on in one column more, and they are refused like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StringType, StructField, StructType

from .records import Record, Refusal

WHY = "_malformed"
"""The column that says why a row is refused without being looked at; null: it is looked at."""

FIELD = "row"
"""The field that is at fault for it."""

_TEXT = "_light_scheduler_malformed_text"
"""What readers call the column that has such a row as it is in the file."""
_FORMATS = ("csv", "json")
_IS = "is malformed: "


def passing_on(format: str, reading: Mapping[str, str]) -> dict[str, str]:
    """Return what makes the reader of a format pass on malformed rows, unless `reading` says what to do with them."""
    if format not in _FORMATS or "mode" in map(str.lower, reading):
        return {}
    return {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT}


def leaving_out(reading: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a reader that leaves out the malformed rows that one with these options passes on."""
    passes_on = reading.get("columnNameOfCorruptRecord") == _TEXT
    return {**reading, "mode": "DROPMALFORMED"} if passes_on else dict(reading)


def without_text(schema: StructType) -> StructType:
    """Return a schema that a reader has found without the column that such a reader may have added."""
    return StructType([field for field in schema.fields if field.name != _TEXT])


def with_text(schema: StructType) -> StructType:
    """Return the schema of a table with the column that such a reader fills."""
    return StructType([*schema.fields, StructField(_TEXT, StringType())])


def why_in_text() -> Column:
    """Return WHY of rows that have the column of a reader. What is no UTF-8 in them becomes U+FFFD: Python reads it."""
    return F.concat(F.lit(_IS), F.make_valid_utf8(F.col(_TEXT)))


def malformed_texts(report: DataFrame) -> DataFrame:
    """Return (file, text) of rows that tasks have refused for this reason."""
    refused = report.where((F.col("field") == FIELD) & F.startswith("reason", F.lit(_IS)))
    return refused.select("file", F.substring("reason", len(_IS) + 1, 2**31 - 1).alias("text"))


def why_in_refused() -> Column:
    """Return WHY of rows of a table of refused rows: malformed ones have no content there."""
    return F.when(F.col("content").isNull(), F.col("reason"))


def whys(batch: pa.RecordBatch) -> list[str | None]:
    """Return WHY of the rows of a batch; an empty list if it has no such rows."""
    column = batch.column(WHY) if WHY in batch.schema.names else None
    return [] if column is None or column.null_count == len(column) else column.to_pylist()


def refusing(made: list[Record | Refusal], whys: Sequence[str | None]) -> list[Record | Refusal]:
    """Return what rows come to, given what they would come to if none were malformed."""
    if not whys:
        return made
    return [one if why is None else Refusal(FIELD, why) for one, why in zip(made, whys, strict=True)]
