"""Tables that jobs read and write: by path and format, or by name, as `table:NAME` of Spark's catalog.

A relative path refers to the working directory, and is only allowed on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from light_scheduler.errors import JobError

Format = Literal["parquet", "csv", "json", "delta"]

_READING: dict[str, dict[str, str]] = {
    # As in RFC 4180: quotes are doubled, and quoted cells may contain line breaks. An empty cell is null, and "" is an
    # empty text: Spark takes both for null, unless null is set to a text that no cell has. A row with more cells than
    # the header is an error, since text may have been cut off at a comma. Cells are only counted if all columns are
    # read.
    "csv": {
        **{"header": "true", "multiLine": "true", "escape": '"', "nullValue": "\0"},
        **{"mode": "FAILFAST", "columnPruning": "false"},
    },
    # A line that is not JSON would become a row of nulls.
    "json": {"mode": "FAILFAST"},
}
_WHOLE = re.compile(r"(?P<root>[^/:]+://[^/]*|[^/:]+:(?!//)|)(?P<path>/.*|)", re.DOTALL)
"""An absolute path: `/state`, `file:/state`, `s3a://bucket/state`."""

_WITHOUT_SCHEMA = ("csv", "json")
_BY_NAME = "table:"
_NAME = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*")

_NO_NANOSECONDS = (
    " Spark cannot read timestamps in nanoseconds: write them in microseconds, as with "
    'to_parquet(..., coerce_timestamps="us") of pandas'
)

_ADDING = {"mergeSchema": "true"}
"""Missing columns are added to a Delta table."""
WHOLE = "_SUCCESS"
"""The file that Spark writes to a folder when all others are complete."""

_WRITING: dict[str, dict[str, str]] = {"csv": {"header": "true", "escape": '"'}}
_TELLS_WHOLE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "true"}
_DOES_NOT_TELL = dict.fromkeys(_TELLS_WHOLE, "false")
"""Spark writes or omits WHOLE, regardless of Hadoop's configuration."""


def read_table(
    spark: SparkSession,
    path: str,
    format: str,
    options: Mapping[str, str] | None = None,
    schema: str | StructType | None = None,
) -> DataFrame:
    """Return a table. `options` are those of Spark's reader. Raises JobError if it does not exist, or as `located`.

    `schema` is for formats without their own. The format of a table by name is the catalog's; only for a Delta table it
    must be given, since the session is set up for it.
    """
    reader = spark.read.format(format)
    if schema is not None and format in _WITHOUT_SCHEMA:
        reader = reader.schema(schema)
    for name, value in {**reading_options(format), **(options or {})}.items():
        reader = reader.option(name, value)
    try:
        if format != "delta" and (table := catalog_name(path)) is not None:
            if described(spark, table).provider == "delta":
                raise JobError(f"{table} is a Delta table: give its format as delta")
            return looked_up(reader.table(table))
        return looked_up(reader.load(located(spark, path)))
    except AnalysisException as error:
        if "UNABLE_TO_INFER_SCHEMA" in str(error):
            raise JobError(
                f"{path} has no file, or no file with rows, of the format {format}, so its columns are not known: put "
                "one there, or give another format with --format"
            ) from error
        hint = _NO_NANOSECONDS if "TIMESTAMP(NANOS" in str(error) else ""
        raise JobError(f"{path} cannot be read as {format}: {_first_line(error)}{hint}") from error


class CatalogTable(NamedTuple):
    """A catalog's description of a table: its format, in lower case, and its folder; None for a view."""

    provider: str
    location: str | None


def catalog_name(path: str) -> str | None:
    """Return the name of a table given as `table:NAME`; None if it is given by path.

    Raises JobError if the name is invalid.
    """
    return valid_name(path.removeprefix(_BY_NAME)) if path.startswith(_BY_NAME) else None


def valid_name(name: str) -> str:
    """Return a name of the catalog. Raises JobError if it is invalid."""
    if not _NAME.fullmatch(name):
        raise JobError(
            f"{name} is not a name in a catalog: write it like lake.archive, with special characters in backticks"
        )
    return name


def described(spark: SparkSession, name: str) -> CatalogTable:
    """Return the session catalog's description of a table. Raises JobError if there is none with that name."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except AnalysisException as error:
        raise JobError(f"Spark's catalog has no table {name} that can be used: {_first_line(error)}") from error
    names = [row.col_name for row in rows]
    # Lines before the heading are columns, which may have any name.
    told = {row.col_name: row.data_type for row in rows[names.index("# Detailed Table Information") :]}
    return CatalogTable(told.get("Provider", "").lower(), told.get("Location") or None)


def located(spark: SparkSession, path: str) -> str:
    """Return a path in absolute form, normalised, since jobs name locks after it.

    For a table by name, it is the table's folder. Raises JobError if it has none, and for a relative path on a cluster,
    where the working directory is unknown.
    """
    if (name := catalog_name(path)) is not None:
        location = described(spark, name).location
        if location is None:
            raise JobError(f"{name} has no folder of files: name a table, not a view")
        return located(spark, location)
    if (whole := _WHOLE.fullmatch(path)) is not None:
        parts = [part for part in whole["path"].split("/") if part not in ("", ".")]
        return whole["root"] + "".join(f"/{part}" for part in parts) if parts else path
    if path.startswith(("file:", "hdfs:")):
        return path
    if not (spark.conf.get("spark.master", None) or "").startswith("local"):
        raise JobError(f"{path} is a relative path: give an absolute one, such as hdfs:///{path}")
    return str(Path(path).absolute())


def looked_up(table: DataFrame) -> DataFrame:
    """Return a table whose path Spark has checked: Spark Connect only does so when its schema is requested."""
    _ = table.schema
    return table


def if_there(read: Callable[[], DataFrame]) -> DataFrame | None:
    """Return the result of reading files; None if their path does not exist."""
    try:
        return looked_up(read())
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise


def require_place(spark: SparkSession, path: str | None) -> None:
    """Raise JobError as `located` if no table can be written to a path. None, or a name of the catalog, is fine.

    Jobs call it before they begin, since some have done irreversible work by the time they write their tables.
    """
    if path is not None and catalog_name(path) is None:
        located(spark, path)


def reading_options(format: str) -> dict[str, str]:
    """Return the options of Spark's reader for a format."""
    return dict(_READING.get(format, {}))


def write_table(table: DataFrame, path: str, format: str, mode: str = "overwrite") -> None:
    """Write a table, replacing an existing one, or in another mode of Spark's writers. Raises as `located`.

    A table by name is created if the catalog lacks it.
    """
    writer = table.write.format(format).mode(mode).options(**_ADDING if mode == "append" else {})
    for option, value in _WRITING.get(format, {}).items():
        writer = writer.option(option, value)
    if (name := catalog_name(path)) is not None:
        writer.saveAsTable(name)
    else:
        writer.options(**{} if format == "delta" else _TELLS_WHOLE).save(located(table.sparkSession, path))


def unmark(spark: SparkSession, path: str, format: str) -> None:
    """Make a folder of files look like that of a killed job: without WHOLE, and without rows."""
    writer = spark.createDataFrame([], "nothing int").write.format(format).mode("overwrite")
    writer.options(**_DOES_NOT_TELL).save(located(spark, path))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
