"""Tables that jobs read and write: by path and format, or by name, as `table:NAME` of Spark's catalog.

A relative path is one of the working directory, on this machine only.
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
    # As RFC 4180 has it: quotes are doubled, and what is quoted may hold line breaks. Nothing at all is null, and "" is
    # empty: Spark takes both for null, unless null is something that no cell holds. A row with more cells than the
    # header is an error: text may have been cut off at a comma. Without all columns, nobody would count the cells.
    "csv": {
        **{"header": "true", "multiLine": "true", "escape": '"', "nullValue": "\0"},
        **{"mode": "FAILFAST", "columnPruning": "false"},
    },
    # A line that is no JSON would be a row of nulls.
    "json": {"mode": "FAILFAST"},
}
_WHOLE = re.compile(r"(?P<root>[^/:]+://[^/]*|[^/:]+:(?!//)|)(?P<path>/.*|)", re.DOTALL)
"""A whole path: `/state`, `file:/state`, `s3a://bucket/state`."""

_WITHOUT_SCHEMA = ("csv", "json")
_BY_NAME = "table:"
_NAME = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*")

_NO_NANOSECONDS = (
    " Spark cannot read timestamps in nanoseconds: write them in microseconds, as with "
    'to_parquet(..., coerce_timestamps="us") of pandas'
)

_ADDING = {"mergeSchema": "true"}
"""A Delta table gets the columns that it has not."""
WHOLE = "_SUCCESS"
"""The file that Spark writes into a folder when all others are in their place."""

_WRITING: dict[str, dict[str, str]] = {"csv": {"header": "true", "escape": '"'}}
_TELLS_WHOLE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "true"}
_DOES_NOT_TELL = dict.fromkeys(_TELLS_WHOLE, "false")
"""Spark writes WHOLE or does not, whatever the configuration of Hadoop says."""


def read_table(
    spark: SparkSession,
    path: str,
    format: str,
    options: Mapping[str, str] | None = None,
    schema: str | StructType | None = None,
) -> DataFrame:
    """Return a table; `options` are those of Spark's reader. Raises JobError if there is none, or as `located`.

    `schema` is for formats that do not know their own. The format of a table by name is the
    catalog's, save that a Delta table has to be called so: a session is made for it.
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
    """What a catalog says of a table: its format, in lower case, and its folder. A view has none."""

    provider: str
    location: str | None


def catalog_name(path: str) -> str | None:
    """Return the name of a table that is given as `table:NAME`, None if it is given by its path.

    Raises JobError if it cannot be a name.
    """
    return valid_name(path.removeprefix(_BY_NAME)) if path.startswith(_BY_NAME) else None


def valid_name(name: str) -> str:
    """Return a name of the catalog. Raises JobError if it cannot be one."""
    if not _NAME.fullmatch(name):
        raise JobError(
            f"{name} is not a name in a catalog: write it like lake.archive, with special characters in backticks"
        )
    return name


def described(spark: SparkSession, name: str) -> CatalogTable:
    """Return what the session's catalog says of a table. Raises JobError if it has none of that name."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except AnalysisException as error:
        raise JobError(f"Spark's catalog has no table {name} that can be used: {_first_line(error)}") from error
    names = [row.col_name for row in rows]
    # What comes before the headline are columns, which may have any name.
    told = {row.col_name: row.data_type for row in rows[names.index("# Detailed Table Information") :]}
    return CatalogTable(told.get("Provider", "").lower(), told.get("Location") or None)


def located(spark: SparkSession, path: str) -> str:
    """Return a whole path, in one form however its slashes are written: locks of jobs are named after it.

    That of a table by name is its folder. Raises JobError if it has none, and on a cluster, where nobody knows what a
    path is relative to.
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
    """Return a table whose path Spark has looked at: Spark Connect does so only when its schema is asked for."""
    _ = table.schema
    return table


def if_there(read: Callable[[], DataFrame]) -> DataFrame | None:
    """Return what reads files, None if their path is not there."""
    try:
        return looked_up(read())
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise


def require_place(spark: SparkSession, path: str | None) -> None:
    """Raise JobError as `located` if no table can be written at a path; None, or a name of the catalog, is fine.

    A job asks before it begins: some have done what cannot be undone when they write their tables.
    """
    if path is not None and catalog_name(path) is None:
        located(spark, path)


def reading_options(format: str) -> dict[str, str]:
    """Return the options of Spark's reader for a format."""
    return dict(_READING.get(format, {}))


def write_table(table: DataFrame, path: str, format: str, mode: str = "overwrite") -> None:
    """Write a table in the place of what is there, or in another mode of Spark's writers. Raises as `located`.

    A table by name that the catalog lacks is created.
    """
    writer = table.write.format(format).mode(mode).options(**_ADDING if mode == "append" else {})
    for option, value in _WRITING.get(format, {}).items():
        writer = writer.option(option, value)
    if (name := catalog_name(path)) is not None:
        writer.saveAsTable(name)
    else:
        writer.options(**{} if format == "delta" else _TELLS_WHOLE).save(located(table.sparkSession, path))


def unmark(spark: SparkSession, path: str, format: str) -> None:
    """Leave a folder of files as a job does that was killed: without WHOLE, and without rows."""
    writer = spark.createDataFrame([], "nothing int").write.format(format).mode("overwrite")
    writer.options(**_DOES_NOT_TELL).save(located(spark, path))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
