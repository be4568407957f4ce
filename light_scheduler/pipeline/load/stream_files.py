"""The files of a micro-batch of a stream, as the stream's checkpoint has them.

Rows say where they are from, but a file can be without a row. Spark notes the files of each look at the folder, and up
to which look a micro-batch goes:

    offsets/7             its last line is {"logOffset":9}
    sources/0/9           a line for each file of look 9: {"path":"file:///in/a%20b","timestamp":1767225600000,"batchId":9}
    sources/0/9.compact   instead of it in every tenth look: the files of all looks so far

The files of all looks can be many: they are read where the checkpoint is, and only those of one look are kept.
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
    """A checkpoint of a stream, whose files are named by their path in it."""

    def last_line(self, name: str) -> str | None:
        """Return the last line of a small file; None if it is not there."""
        ...

    def noted(self, name: str, look: int) -> list[str]:
        """Return the paths that a file notes of a look; none if it is not there."""
        ...


@dataclass(frozen=True)
class SparkCheckpoint:
    """A checkpoint on any file system of Spark."""

    spark: SparkSession
    path: str

    def last_line(self, name: str) -> str | None:
        found = if_there(lambda: self.spark.read.text(self._file(name)))
        rows = [] if found is None else found.collect()
        return str(rows[-1].value) if rows else None

    def noted(self, name: str, look: int) -> list[str]:
        # The first line is the version of the log, and no JSON: a row of nulls.
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
    """Return the files of a micro-batch, as `_metadata.file_path` has them. Raises JobError if they are not known."""
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
        raise _unknown(look)  # a look that finds nothing is not noted
    return files


def _unknown(number: int) -> JobError:
    return JobError(
        f"the checkpoint of the load does not have the files of micro-batch {number}, so rows could be lost unnoticed: "
        "start the load with another --checkpoint, which sends nothing twice"
    )
