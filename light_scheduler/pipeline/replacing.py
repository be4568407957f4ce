"""Checks that a table which a job replaces is the only thing at its path.

Spark deletes a folder with everything in it before it writes a table there, including unrelated files and tables in
subfolders, such as yesterday's backup.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

from light_scheduler.errors import JobError

from .globs import without_globs
from .tables import WHOLE, catalog_name, if_there, located, require_place

_PART = r"part-[0-9]{5,}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[^/]*"
_OF_TABLE = re.compile(_PART)
"""Spark's names of files, with the UUID of the job that wrote them."""
_LEFT_BY_JOBS = re.compile(rf"{WHOLE}|\.(?:{WHOLE}|{_PART})\.crc")
"""Files that Spark writes beside those of a table."""
_UNFINISHED = "_temporary"
"""The folder in which Spark writes the files of a table until all are complete."""


def require_replaceable(spark: SparkSession, path: str | None, format: str = "parquet") -> None:
    """Raise JobError if writing a table to a path would replace other files than the table's own.

    Also raises as `require_place`. A Delta table, and a table by name, only replace rows.
    """
    require_place(spark, path)
    if path is None or format == "delta" or catalog_name(path) is not None:
        return
    where = located(spark, path)
    other = _seen_on_this_machine(path, where) or _seen_by_spark(spark, where)
    if other is not None:
        raise JobError(
            f"{path} has other files in it than those of one table, such as {other}. They would be deleted: the job "
            "writes its table in the place of what is there. Give a path of its own, or empty that folder"
        )


def foreign(folder: str, files: Iterable[str]) -> str | None:
    """Return a file at a path or in it, among those that Spark lists, that is not part of a table written there by
    Spark.

    Spark does not list files whose name, or folder, begins with `_` or `.`.
    """
    names = _plain(folder)
    for file in sorted(files):
        below = _plain(unquote(file))[len(names) :]
        if len(below) != 1 or not _OF_TABLE.fullmatch(below[0]):
            return file
    return None


def _seen_on_this_machine(path: str, where: str) -> str | None:
    """Return a file that is not part of the table at a local path; `path` is how it was given."""
    local = _local(where)
    if local is None:
        return None
    try:
        if local.is_file():
            raise JobError(f"{path} is a file. It would be deleted: the job writes its table in a folder of that name")
        return _other_file(local)
    except OSError as error:
        raise JobError(
            f"{path} cannot be searched for other files: {error}. They would be deleted: the job writes its table in "
            "the place of what is there. Give a path of its own"
        ) from error


def _seen_by_spark(spark: SparkSession, where: str) -> str | None:
    """Return a file that is not part of the table at a path, as far as Spark tells."""
    log = f"{without_globs(where)}/_delta_log"
    if if_there(lambda: spark.read.text(log)) is not None:
        return f"{where}/_delta_log"
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")  # no file is opened
    there = if_there(lambda: reader.load(without_globs(where)))
    return None if there is None else foreign(where, there.inputFiles())


def _other_file(folder: Path) -> str | None:
    """Return a file in a folder that is not part of a table, hidden or not, or a link to another folder. Raises
    OSError."""

    def fail(error: OSError) -> None:
        raise error

    for above, folders, files in os.walk(folder, onerror=fail) if folder.is_dir() else ():
        is_top = above == os.fspath(folder)
        others = [name for name in files if not (is_top and _is_replaced(name))]
        others += [name for name in folders if Path(above, name).is_symlink()]
        if others:
            return f"{above}/{min(others, key=lambda name: (name.startswith(('_', '.')), name))}"
        folders[:] = sorted(name for name in folders if not (is_top and _is_unfinished(Path(above, name))))
    return None


def _is_unfinished(folder: Path) -> bool:
    """Return whether a folder only has unfinished files of jobs, which are in folders named after the job's number."""
    return folder.name == _UNFINISHED and all(each.name.isdigit() and each.is_dir() for each in folder.iterdir())


def _is_replaced(name: str) -> bool:
    return bool(_OF_TABLE.fullmatch(name) or _LEFT_BY_JOBS.fullmatch(name))


def _local(where: str) -> Path | None:
    """Return an absolute path as a local one; None if it is not local."""
    if not where.startswith(("/", "file:")):
        return None
    return Path(os.path.sep, *_plain(where))


def _plain(path: str) -> list[str]:
    whole = posixpath.normpath(re.sub("^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?", "", path))
    return [name for name in whole.split("/") if name not in ("", ".")]
