"""Files in the folder of a table that Spark silently does not read.

If some folders have columns in their names (`tenant=007`), Spark reads the files in those, and skips files beside them.
If none has, it reads the files in the table's folder itself, and skips folders in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import is_pattern
from light_scheduler.pipeline.tables import catalog_name, located

from .few_tasks import in_few_tasks, listing_in_few_tasks
from .file_names import HERE
from .folder_columns import FLAT, parts_of, root_of, takes_columns, values_between, without_folders

_MOST_SHOWN = 10


def require_all_read(rows: DataFrame, table: str, format: str, reading: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns in the names of the folders of a table with these rows. Raises JobError if Spark does not read
    all files in its folder."""
    if not is_checked(table, format, reading):
        return ()
    spark, read = rows.sparkSession, rows.inputFiles()
    columns = [columns_of_folders(root_of(spark, table, reading), file) for file in read]
    is_read = {re.sub(HERE, "/", file) for file, names in zip(read, columns, strict=True) if names or not any(columns)}
    unread = [file for file in files_below(spark, table, reading) if re.sub(HERE, "/", file) not in is_read]
    known = max(columns, key=len, default=())
    _require_none(sorted(unread), known)
    return known


def require_new_ones_read(files: Sequence[str], there: Sequence[str], root: str, known: Sequence[str]) -> None:
    """Raise JobError if new files of a root, or one of the files in `there`, are not in folders with the `known`
    columns in their names."""
    if known:
        _require_none([file for file in files if columns_of_folders(root, file) != tuple(known)], known)
    elif not is_pattern(root):  # the pattern may name folders
        depth = len(parts_of(root)) + 1
        _require_none([file for file in there if len(parts_of(unquote(file))) > depth], known)


def is_checked(table: str, format: str, reading: Mapping[str, str]) -> bool:
    """Return whether Spark may leave out files of such a table."""
    return format != "delta" and catalog_name(table) is None and takes_columns(reading)


def columns_of_folders(root: str, file: str) -> tuple[str, ...]:
    """Return the columns in the names of the folders between a root and a file, the outermost first."""
    return tuple(values_between(root, file))[::-1]


def files_below(spark: SparkSession, table: str, reading: Mapping[str, str]) -> list[str]:
    """Return the paths of the files of a table, including all folders in it, as in rows. No file is opened.

    There can be many, and `inputFiles` asks Java for one at a time.
    """
    with listing_in_few_tasks(spark):
        reader = spark.read.format("binaryFile").options(**without_folders(reading))
        files = in_few_tasks(reader.load(located(spark, table)).select("_metadata.file_path"))
        return [str(file) for file in files.toArrow().column(0).to_pylist()]


def _require_none(files: Sequence[str], columns: Sequence[str]) -> None:
    """Raise JobError if there are unread files."""
    if not files:
        return
    where = (
        f"beside the folders {'/'.join(f'{name}=...' for name in columns)}, and Spark reads only files in these"
        if columns
        else "in folders within the folder that is loaded, and Spark does not read these"
    )
    more = f", and {len(files) - _MOST_SHOWN:,} more" if len(files) > _MOST_SHOWN else ""
    raise JobError(
        f"files are {where}: {', '.join(files[:_MOST_SHOWN])}{more}. Nothing of them was sent. Move them, give folders "
        "that are not to be loaded names that begin with `_`, or load all files, without columns in names of folders, "
        f"with --read-option {FLAT}=true"
    )
