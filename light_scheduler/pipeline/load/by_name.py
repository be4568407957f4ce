"""Tables of Spark's catalog that a load can read by name.

Columns of Parquet have types and lengths; lines of JSON and CSV do not. A load checks those using its own reader
options, but a catalog has options of its own.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from light_scheduler.errors import JobError
from light_scheduler.pipeline.tables import catalog_name, described

_BY_NAME = ("parquet", "orc", "delta")
_LINES = ("csv", "json")


def format_of(spark: SparkSession, path: str, format: str) -> str:
    """Return the format of a table; for a table given by name, the catalog's.

    Raises JobError if the table cannot be loaded by name. The format of a Delta table must still be given.
    """
    if format == "delta" or (name := catalog_name(path)) is None:
        return format
    found = described(spark, name)
    if found.provider in _BY_NAME:
        return found.provider if found.provider != "delta" else format
    if found.provider in _LINES and found.location is not None:
        raise JobError(
            f"{name} is a table of {found.provider.upper()}, of which a load can check lines only if it is given the "
            f"path of the files: load {found.location} with --format {found.provider}, and with --read-option for each "
            "option of the table"
        )
    if not found.provider:
        raise JobError(
            f"{name} is a view: a load takes tables of Parquet, ORC and Delta Lake by name. Write its rows to one of "
            "these"
        )
    return format
