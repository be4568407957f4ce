"""Columns in the names of folders (`tenant=007`) that files contain as well.

Spark uses the value of the folder, and silently ignores the one in the file. That is harmless if both are the same:
Kafka Connect, for example, writes files with the columns of their folders.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import dropwhile, takewhile
from operator import or_
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import catalog_name, located, read_table, reading_options

from .file_names import HERE
from .malformed import leaving_out

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(//[^/]*)?")
_FORMATS = ("csv", "json", "parquet", "orc")
FLAT = "recursiveFileLookup"
"""The reader option that ignores columns in the names of folders."""
_BASE = "basepath"
"""The reader option, in lower case, that names the folder below which folder names are columns."""
_NULL = "__HIVE_DEFAULT_PARTITION__"

Folders = Mapping[str, Mapping[str, str | None]]
"""Folder of files, without the local scheme -> values of the columns in its name."""


def require_same_in_table(
    rows: DataFrame, table: str, format: str, reading: Mapping[str, str], ignored: Collection[str]
) -> None:
    """Raise JobError if files of a table differ from the names of their folders in a column that is not ignored."""
    spark = rows.sparkSession
    if folders := _folders(spark, table, format, reading, rows.inputFiles):
        require_same(read_table(spark, table, format, leaving_out(without_folders(reading))), folders, ignored)


def require_same_in_files(
    spark: SparkSession,
    files: Sequence[str],
    table: str,
    format: str,
    reading: Mapping[str, str],
    ignored: Collection[str],
) -> None:
    """Raise JobError, as `require_same_in_table`, for some files of a table."""
    if folders := _folders(spark, table, format, reading, lambda: files):
        options = {**reading_options(format), "mergeSchema": "true", **leaving_out(without_folders(reading))}
        paths = [without_globs(unquote(file)) for file in files]
        require_same(spark.read.format(format).options(**options).load(paths), folders, ignored)


def takes_columns(reading: Mapping[str, str]) -> bool:
    """Return whether a reader with these options uses columns in the names of folders."""
    return {name.lower(): value.lower() for name, value in reading.items()}.get(FLAT.lower()) != "true"


def root_of(spark: SparkSession, table: str, reading: Mapping[str, str]) -> str:
    """Return the folder, or the pattern of folders, below which folder names are columns."""
    return {name.lower(): value for name, value in reading.items()}.get(_BASE) or located(spark, table)


def without_folders(reading: Mapping[str, str]) -> dict[str, str]:
    """Return reader options that ignore columns in the names of folders."""
    kept = {name: value for name, value in reading.items() if name.lower() not in (FLAT.lower(), _BASE)}
    return {**kept, FLAT: "true"}


def require_same(rows: DataFrame, folders: Folders, ignored: Collection[str]) -> None:
    """Raise JobError if a row of files, read without their folders, has a different value than its folder's name."""
    there = {name.lower(): name for name in rows.columns}
    names = {name for values in folders.values() for name in values} - set(ignored)
    if not (twice := sorted(name for name in names if name.lower() in there)):
        return
    folder = F.regexp_extract(F.regexp_replace("_metadata.file_path", HERE, "/"), "^(.*)/", 1)
    found = [F.col(_quoted(there[name.lower()])).cast("string").alias(f"file{n}") for n, name in enumerate(twice)]
    known = [(place, *map(values.get, twice)) for place, values in folders.items()]
    columns = ", ".join(["place string", *(f"folder{n} string" for n in range(len(twice)))])
    in_folders = rows.sparkSession.createDataFrame(known, columns)
    both = rows.select(folder.alias("place"), F.col("_metadata.file_path").alias("file"), *found)
    both = both.join(F.broadcast(in_folders), "place", "left")
    files, named = zip(*((F.col(f"file{n}"), F.col(f"folder{n}")) for n in range(len(twice))), strict=True)
    differs = [own.isNotNull() & ~own.eqNullSafe(name) for own, name in zip(files, named, strict=True)]
    if (row := both.where(reduce(or_, differs)).first()) is None:
        return
    n = next(n for n in range(len(twice)) if row[f"file{n}"] not in (None, row[f"folder{n}"]))
    raise JobError(
        f"the column {twice[n]} is in the files and in the names of their folders ({twice[n]}=...), of which Spark "
        f"takes the folder's value only, and {row.file} has a row with {row[f'file{n}']} in it instead of "
        f"{_said(row[f'folder{n}'])}: leave it out of the files, or give the folders other names. To take the "
        f"value in the files, use --read-option {FLAT}=true"
    )


def values_between(root: str, file: str) -> dict[str, str | None]:
    """Return the columns that Spark finds in the folders between a root, which may be a pattern, and a file in it.

    Spark goes up from the file, skips folders without a column, and stops above the first consecutive ones that have
    some.
    """
    above = parts_of(unquote(file))[len(parts_of(root)) : -1][::-1]
    run = takewhile(_is_column, dropwhile(lambda folder: not _is_column(folder), above))
    pairs = (folder.partition("=") for folder in run)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}


def _folders(
    spark: SparkSession, table: str, format: str, reading: Mapping[str, str], files: Callable[[], Iterable[str]]
) -> Folders:
    """Return the folders of files, if the reader of their table uses columns in their names."""
    if format not in _FORMATS or catalog_name(table) is not None or not takes_columns(reading):
        return {}
    root = root_of(spark, table, reading)
    first = {re.sub(HERE, "/", file).rpartition("/")[0]: file for file in files()}
    folders = {place: values_between(root, file) for place, file in first.items()}
    return folders if any(folders.values()) else {}


def _is_column(folder: str) -> bool:
    return "=" in folder


def _said(value: str | None) -> str:
    return "nothing" if value is None else value


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def parts_of(path: str) -> list[str]:
    """Return the names in a path, without scheme and host."""
    return [part for part in posixpath.normpath(_SCHEME.sub("", path, count=1)).split("/") if part]
