"""New rows of a Delta table, by its versions.

Files of a Delta table come and go without a change of the data: OPTIMIZE writes the same rows into other files, which
are cut into other batches. So a load notes the version that it has loaded, and the next one reads the rows that are new
since then. Commits say of each file whether it changed the data. If commits only added rows, the new rows are those of
the added files. If they also removed rows (UPDATE, MERGE, DELETE, overwriting), added files also hold old rows: then
the new rows are those of the added files, less equal rows of the removed files.

    mark of a table   JSON {"loaded": 12, "begun": null}: all rows up to version 12 are loaded
                      JSON {"loaded": 12, "begun": 15}: rows new in 15 are being loaded; a later run goes on with them
                      JSON {"loaded": null, "begun": 7}: version 7 is being loaded, whole
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.tables import read_table

_COMMIT = "add struct<path:string,dataChange:boolean>, remove struct<path:string,dataChange:boolean>"
_WHOLE = re.compile("[a-z][a-z0-9+.-]*:/|/")
_GLOBS = re.compile(r"[\\*?{}\[\]]")
_METADATA = "metaData struct<id:string>"
MOST_BROADCAST = 1_000_000
"""Rows of files that are gone whose digests each task gets as a whole, about 100 bytes each; more are shuffled."""

_TO_THE_MICROSECOND = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


class Commit(NamedTuple):
    """The paths of the files by which a commit changed the data."""

    added: set[str]
    removed: set[str]


class TableMark(msgspec.Struct, frozen=True):
    """How far a table is loaded."""

    loaded: int | None = None
    begun: int | None = None


@dataclass(frozen=True)
class TableVersion:
    """A table at a path as it is at a version; `id` stays the same until the table is replaced or dropped.

    `root` is the path as Spark writes those of the table's files. These are whole paths here, nothing in them quoted:
    of tables that were converted, folders have files of the same names.
    """

    spark: SparkSession
    path: str
    options: Mapping[str, str]
    id: str
    version: int
    root: str

    @classmethod
    def at(cls, spark: SparkSession, path: str, options: Mapping[str, str]) -> TableVersion:
        """Return the table as it is now. Raises JobError if there is none."""
        try:
            table = DeltaTable.forPath(spark, path)
            detail, last = table.detail().first(), table.history(1).first()
        except AnalysisException as error:
            raise JobError(f"{path} cannot be read as delta: {str(error).splitlines()[0]}") from error
        assert detail is not None, "a table has details"
        assert last is not None, "a table has a version"
        return cls(spark, path, options, detail["id"], last["version"], unquote(detail["location"]).rstrip("/"))

    def earlier_ids(self) -> list[str]:
        """Return the ids that the table had before `CREATE OR REPLACE TABLE`, the last one first.

        A table that was replaced goes on with the log and the versions of its predecessor; one that was dropped and
        created again begins anew.
        """
        reader = self.spark.read.schema(_METADATA).option("pathGlobFilter", "*.json")
        changes = reader.json(self._log).where("metaData.id is not null")
        rows = changes.select("metaData.id", F.col("_metadata.file_name").alias("commit")).collect()
        ids = [row.id for row in sorted(rows, key=lambda row: str(row.commit), reverse=True)]
        return [id for id in dict.fromkeys(ids) if id != self.id]

    def between(self, since: int | None, until: int) -> list[DataFrame]:
        """Return the rows that a version has and an earlier one had not, in parts; all of them if that one is None.

        Raises JobError if the log between them is gone, or what has to be compared.
        """
        if since is None:
            return [self._whole(until)]
        commits = {version: self._commit(version) for version in range(since + 1, until + 1)}
        if any(commit.removed for commit in commits.values()):
            return self._difference(since, until)
        return self._added(commits, until)

    def gone(self, since: int, until: int) -> tuple[DataFrame, DataFrame] | None:
        """Return the rows that a version had and a later one has not, and all rows of that one; None if no commit
        between them removed any.

        Raises JobError if the log between them is gone, or what has to be compared.
        """
        if not any(self._commit(version).removed for version in range(since + 1, until + 1)):
            return None
        before, after = self._whole(since), self._whole(until)
        old, new = set(before.inputFiles()), set(after.inputFiles())
        self._require(old - new, since)
        removed, added = _only(before, old - new), _only(after, new - old)
        there = added.select(_said(after.columns).alias("said"))
        return removed.join(there, _said(before.columns) == there["said"], "left_anti"), after

    def _whole(self, version: int) -> DataFrame:
        return read_table(self.spark, self.path, "delta", {**self.options, "versionAsOf": str(version)})

    def _added(self, commits: Mapping[int, Commit], until: int) -> list[DataFrame]:
        added = set[str]().union(*(commit.added for commit in commits.values()))
        if not added:
            return []
        here = self._whole(until)
        present = added & set(here.inputFiles())
        parts = [_only(here, present)] if present else []
        # What was added and is in other files by now is in its own as of then.
        return parts + [
            _only(self._whole(version), commit.added - present)
            for version, commit in commits.items()
            if commit.added - present
        ]

    def _difference(self, since: int, until: int) -> list[DataFrame]:
        before, after = self._whole(since), self._whole(until)
        old, new = set(before.inputFiles()), set(after.inputFiles())
        if not new - old:
            return []
        self._require(old - new, since)
        said, removed, added = _said(after.columns), _only(before, old - new), _only(after, new - old)
        gone = removed.select(_said(before.columns).alias("said")).distinct()
        if removed.count() <= MOST_BROADCAST:
            # Each task reads its rows in the order of their file: batches are the same if run again.
            return [added.join(F.broadcast(gone), said == gone["said"], "left_anti")]
        # Put back into that order, in tasks whose number follows from the files alone.
        numbered = added.select("*", "_metadata", F.monotonically_increasing_id().alias("_row"))
        left = numbered.join(gone, said == gone["said"], "left_anti")
        piece = "_metadata.file_path", "_metadata.file_block_start"
        return [left.repartition(len(new - old), *piece).sortWithinPartitions(*piece, "_row")]

    def _commit(self, version: int) -> Commit:
        try:
            log = self.spark.read.schema(_COMMIT).json(f"{self._log}/{version:020}.json")
            rows = log.where("add.dataChange or remove.dataChange").select("add.path", "remove.path").collect()
        except AnalysisException as error:
            raise JobError(
                f"{self.path} no longer has the log of its version {version}, so new rows cannot be told from others. "
                "Load it under another --name, which sends all rows"
            ) from error
        return Commit(
            {self._whole_path(added) for added, _ in rows if added},
            {self._whole_path(removed) for _, removed in rows if removed},
        )

    @property
    def _log(self) -> str:
        return f"{_without_globs(self.path.rstrip('/'))}/_delta_log"

    def _require(self, files: set[str], version: int) -> None:
        """Raise JobError if files of a version are gone. They can be many: Spark looks for them, and reads none.

        It does not before it is asked for columns, in a session of Spark Connect.
        """
        if not files:
            return
        try:
            _ = self.spark.read.format("binaryFile").load([_without_globs(file) for file in sorted(files)]).columns
        except AnalysisException as error:
            raise JobError(
                f"VACUUM has deleted files of version {version} of {self.path}, which was loaded last, so rows that "
                "are new, or deleted since, cannot be told from others. Load it under another --name, which sends all "
                "rows and cancels none. Load more often than files are deleted (delta.deletedFileRetentionDuration, a "
                "week by default)"
            ) from error

    def _whole_path(self, logged: str) -> str:
        """Return the path of a file that the log has relative to the table, or whole if it is elsewhere."""
        path = unquote(logged)
        return path if _WHOLE.match(path) else f"{self.root}/{path}"


def _without_globs(path: str) -> str:
    """Return a path for Spark's readers, which take braces, brackets and the like in it for a pattern."""
    return _GLOBS.sub(r"\\\g<0>", path)


def _said(columns: Sequence[str]) -> Column:
    """Return what tells rows apart: a digest of their values by name, without what is null."""
    row = F.to_json(F.struct(*(f"`{name}`" for name in sorted(columns))), {"timestampFormat": _TO_THE_MICROSECOND})
    return F.unhex(F.substring(F.sha2(row, 256), 1, 32))


def _only(table: DataFrame, files: set[str]) -> DataFrame:
    # It is quoted there, and what unquotes it takes a plus for a space.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return table.where(path.isin(sorted(files)))
