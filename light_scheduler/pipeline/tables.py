"""Tables that jobs read and write, by format. A relative path is one of the working directory, on this machine only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from light_scheduler.errors import JobError

Format = Literal["parquet", "csv", "json", "delta"]

_READING: dict[str, dict[str, str]] = {
    # As RFC 4180 has it: quotes are doubled, and what is quoted may hold line breaks. Nothing at all is null, and "" is
    # empty: Spark takes both for null, unless null is something that no cell holds.
    "csv": {"header": "true", "multiLine": "true", "escape": '"', "nullValue": "\0"},
}
_WHOLE = re.compile(r"(?P<root>[^/:]+://[^/]*|[^/:]+:(?!//)|)(?P<path>/.*|)", re.DOTALL)
"""A whole path: `/state`, `file:/state`, `s3a://bucket/state`."""

_WITHOUT_SCHEMA = ("csv", "json")
_WRITING: dict[str, dict[str, str]] = {"csv": {"header": "true", "escape": '"'}}


def read_table(
    spark: SparkSession,
    path: str,
    format: str,
    options: Mapping[str, str] | None = None,
    schema: str | None = None,
) -> DataFrame:
    """Return a table; `options` are those of Spark's reader. Raises JobError if there is none, or as `located`.

    `schema`, in Spark's words, is for formats that do not know their own.
    """
    reader = spark.read.format(format)
    if schema is not None and format in _WITHOUT_SCHEMA:
        reader = reader.schema(schema)
    for name, value in {**_READING.get(format, {}), **(options or {})}.items():
        reader = reader.option(name, value)
    try:
        return reader.load(located(spark, path))
    except AnalysisException as error:
        raise JobError(f"{path} cannot be read as {format}: {_first_line(error)}") from error


def located(spark: SparkSession, path: str) -> str:
    """Return a whole path, in one form however its slashes are written: locks of jobs are named after it.

    Raises JobError on a cluster, where nobody knows what a path is relative to.
    """
    if (whole := _WHOLE.fullmatch(path)) is not None:
        parts = [part for part in whole["path"].split("/") if part not in ("", ".")]
        return whole["root"] + "".join(f"/{part}" for part in parts) if parts else path
    if path.startswith(("file:", "hdfs:")):
        return path
    if not (spark.conf.get("spark.master", None) or "").startswith("local"):
        raise JobError(f"{path} is a relative path: give a whole one, such as hdfs:///{path}")
    return str(Path(path).absolute())


def write_table(table: DataFrame, path: str, format: str, mode: str = "overwrite") -> None:
    """Write a table in the place of what is there, or in another mode of Spark's writers. Raises as `located`."""
    writer = table.write.format(format).mode(mode)
    for name, value in _WRITING.get(format, {}).items():
        writer = writer.option(name, value)
    writer.save(located(table.sparkSession, path))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
