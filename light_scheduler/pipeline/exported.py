"""Reads tables that `export` wrote.

Spark writes files one by one, and the empty file `_SUCCESS` when all are complete. So a folder without it may come from
a killed export, however complete it looks. Delta and catalogs only show complete tables.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from light_scheduler.errors import JobError

from .globs import require_pattern
from .schedule_table import COLUMNS
from .tables import WHOLE, catalog_name, if_there, located, read_table


def read_export(spark: SparkSession, path: str, format: str) -> DataFrame:
    """Return a table of schedules. Raises JobError if it does not exist, is incomplete, or was not written by
    `export`."""
    if format != "delta" and catalog_name(path) is None:
        require_pattern(path)
        _require_whole(spark, path)
    table = read_table(spark, path, format, schema=COLUMNS)
    if "record" not in table.columns:
        raise JobError(f"{path} was not written by export: it has no column record")
    return table


def _require_whole(spark: SparkSession, path: str) -> None:
    where = located(spark, path)
    if if_there(lambda: spark.read.text(f"{where}/{WHOLE}")) is not None:
        return
    files = if_there(lambda: spark.read.text(where))
    if files is None or _is_file(where, files.inputFiles()):
        return
    raise JobError(
        f"{path} has no file {WHOLE}, which an export writes last: one that failed or was killed leaves a table that "
        f"lacks schedules. Run the export again. If another program wrote the whole table, add an empty file {WHOLE}"
    )


def _is_file(path: str, found: list[str]) -> bool:
    """Return whether a path names the single file that Spark finds there. Spark quotes paths of files."""
    return [_plain(unquote(file)) for file in found] == [_plain(path)]


def _plain(path: str) -> str:
    return re.sub("^file:/+", "/", path)
