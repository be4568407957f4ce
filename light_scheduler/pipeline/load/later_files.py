"""Files that arrive during a continuous load, with columns that no file had when it began.

A stream keeps its initial columns. Spark silently ignores others, so a payload or a header would be left out. So the
load stops before it sends a row of these files, and has the new columns when it is started again. CSV files are read by
position: their headers are checked when they are read (see `csv_headers`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import catalog_name, reading_options

from .folder_columns import without_folders
from .malformed import without_text

_CHECKED = ("parquet", "orc", "json")
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_CORRUPT = "columnNameOfCorruptRecord", "_corrupt_record"
"""The reader option for the column of malformed rows, and its default."""


def can_be_checked(table: str, format: str, reading: Mapping[str, str]) -> bool:
    """Return whether the files alone determine the table's columns: a catalog, or a file of the table, may say
    otherwise."""
    given = {name.lower(): value.lower() for name, value in reading.items()}
    return format in _CHECKED and catalog_name(table) is None and given.get("mergeschema") != "false"


def require_known(
    spark: SparkSession,
    files: Sequence[str],
    format: str,
    reading: Mapping[str, str],
    known: StructType,
    ignored: Collection[str],
) -> None:
    """Raise JobError if files have columns that a load neither knows nor ignores."""
    if not files:
        return
    options = {**reading_options(format), "mergeSchema": "true", **without_folders(reading)}
    paths = [without_globs(unquote(file)) for file in files]
    found = without_text(spark.read.format(format).options(**options).load(paths).schema)
    given = {name.lower(): value for name, value in reading.items()}
    left_out = {*ignored, given.get(_CORRUPT[0].lower(), _CORRUPT[1])}
    found = StructType([field for field in found.fields if field.name not in left_out])
    # A JSON reader distinguishes case, whatever Spark does.
    folds = format != "json" and spark.conf.get(_CASE_SENSITIVE) != "true"
    if new := new_names(known, found, folds=folds):
        raise JobError(
            f"new files have the column {new[0]}, which no file had when the load began: start the load again, so that "
            f"it is read. Nothing of these {len(files)} files was sent. They are: {', '.join(sorted(files)[:10])}"
        )


def new_names(known: DataType, found: DataType, *, folds: bool) -> list[str]:
    """Return the names of columns, and of fields in them, that the found type has but the known one lacks.

    A column known as text accepts any type. `folds`: names that differ only in case are the same.
    """
    if isinstance(known, ArrayType) and isinstance(found, ArrayType):
        return new_names(known.elementType, found.elementType, folds=folds)
    if not isinstance(known, StructType) or not isinstance(found, StructType):
        return []
    fold = str.lower if folds else str
    there = {fold(field.name): field.dataType for field in known.fields}
    names: list[str] = []
    for field in found.fields:
        if (type := there.get(fold(field.name))) is None:
            names.append(field.name)
        else:
            names += [f"{field.name}.{name}" for name in new_names(type, field.dataType, folds=folds)]
    return names
