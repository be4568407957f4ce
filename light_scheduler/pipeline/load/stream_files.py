"""The files of a stream's micro-batch, from the stream's checkpoint.

Rows name their files, but a file can be without rows. Spark records the files of each look at the folder, and up to
which look a micro-batch goes:

    offsets/7             its last line is {"logOffset":9}
    sources/0/9           a line for each file of look 9: {"path":"file:///in/a%20b","timestamp":1767225600000,"batchId":9}
    sources/0/9.compact   replaces it in every tenth look: the files of all looks so far

There can be many files in all looks together: they are read where the checkpoint is, and only those of one look are
kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import if_there


class Checkpoint(Protocol):
    """A checkpoint of a stream. Its files are named by their relative path."""

    def last_line(self, name: str) -> str | None:
        """Return the last line of a small file; None if it does not exist."""
        ...

    def noted(self, name: str, look: int) -> list[str]:
        """Return the paths that a file records for a look; empty if the file does not exist."""
        ...


@dataclass(frozen=True)
class SparkCheckpoint:
    """A checkpoint on any of Spark's file systems."""

    spark: SparkSession
    path: str

    def last_line(self, name: str) -> str | None:
        found = if_there(lambda: self.spark.read.text(self._file(name)))
        rows = [] if found is None else found.collect()
        return str(rows[-1].value) if rows else None

    def noted(self, name: str, look: int) -> list[str]:
        # The first line is the version of the log, which is not JSON, so it becomes a row of nulls.
        found = if_there(lambda: self.spark.read.schema("path string, batchId bigint").json(self._file(name)))
        return [] if found is None else [row.path for row in found.where(F.col("batchId") == look).collect()]

    def _file(self, name: str) -> str:
        return f"{without_globs(self.path)}/{name}"


@dataclass(frozen=True)
class LocalCheckpoint:
    """A checkpoint on this machine, which executors may not reach."""

    path: Path

    def last_line(self, name: str) -> str | None:
        file = self.path / name
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        return lines[-1] if lines else None

    def noted(self, name: str, look: int) -> list[str]:
        file = self.path / name
        if not file.is_file():
            return []
        with file.open(encoding="utf-8") as lines:
            files = (json.loads(line) for line in lines if line.startswith("{"))
            return [file["path"] for file in files if file["batchId"] == look]


def files_of(checkpoint: Checkpoint, batch: int) -> list[str]:
    """Return the files of a micro-batch, as in `_metadata.file_path`. Raises JobError if they are unknown."""
    looks = range(_last_look(checkpoint, batch - 1) + 1, _last_look(checkpoint, batch) + 1)
    return [file for look in looks for file in _files_of_look(checkpoint, look)]


def _last_look(checkpoint: Checkpoint, batch: int) -> int:
    if batch < 0:
        return -1
    planned = checkpoint.last_line(f"offsets/{batch}")
    if planned is None:
        raise _unknown(batch)
    return int(json.loads(planned)["logOffset"])


def _files_of_look(checkpoint: Checkpoint, look: int) -> list[str]:
    name = f"sources/0/{look}"
    if not (files := checkpoint.noted(name, look) or checkpoint.noted(f"{name}.compact", look)):
        raise _unknown(look)  # a look without new files is not recorded
    return files


def _unknown(number: int) -> JobError:
    return JobError(
        f"the checkpoint of the load does not have the files of micro-batch {number}, so rows could be lost unnoticed: "
        "start the load with another --checkpoint, which sends nothing twice"
    )
