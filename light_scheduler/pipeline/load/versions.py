"""New rows of a Delta table, by its versions.

Files of a Delta table come and go without a change of the data: OPTIMIZE writes the same rows to other files, which are
split into other batches. So a load records the version that it has loaded, and the next one reads the rows that are new
since then. Commits say of each file whether it changed the data. If commits only added rows, the new rows are those of
the added files. If they also removed rows (UPDATE, MERGE, DELETE, overwriting), added files also contain old rows: then
the new rows are those of the added files, minus one for each equal row of the removed files.

    mark of a table   JSON {"loaded": 12, "begun": null, "commit": "5f...", "table": ""}: all rows up to version 12 are
                      loaded
                      JSON {"loaded": 12, "begun": 15, "commit": "5f...", "table": "9e..."}: rows new in 15 are being
                      loaded; a later run goes on with them
                      JSON {"loaded": null, "begun": 7, "commit": "", "table": "9e..."}: version 7 is being loaded,
                      whole

`commit` is a digest of the commit of the loaded version. `table` is the id that the table had when the load began.
Marks of older versions of this package have neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs
from light_scheduler.pipeline.tables import read_table

from .commits import Commit, CommitLog
from .few_tasks import listing_in_few_tasks

MOST_BROADCAST = 1_000_000
"""Maximum number of removed rows whose digests are sent to each task as a whole, about 100 bytes each; more are
shuffled."""

_TO_THE_MICROSECOND = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


class _Change(NamedTuple):
    """Two versions of a table, and the files that contain all differing rows: of the first and of the second version.

    A file whose deletion vector has changed belongs to both.
    """

    before: DataFrame
    after: DataFrame
    old: set[str]
    new: set[str]


class TableMark(msgspec.Struct, frozen=True):
    """How far a table has been loaded."""

    loaded: int | None = None
    begun: int | None = None
    commit: str = ""
    table: str = ""

    @property
    def scope(self) -> tuple[Any, ...]:
        """The marked content of batches besides their rows.

        Rows that come back after they were deleted are new, even if a batch with the same content was sent. It is empty
        for a table that is loaded as a whole, and for a load that an older version of this package began.
        """
        return () if self.loaded is None or not self.table else (self.table, self.loaded, self.begun)


@dataclass(frozen=True)
class TableVersion:
    """A version of the table at a path. `id` stays the same until the table is replaced or dropped.

    `root` is the path as Spark writes those of the table's files.
    """

    spark: SparkSession
    path: str
    options: Mapping[str, str]
    id: str
    version: int
    root: str

    @classmethod
    def at(cls, spark: SparkSession, path: str, options: Mapping[str, str]) -> TableVersion:
        """Return the current version of the table. Raises JobError if there is no table."""
        try:
            table = DeltaTable.forPath(spark, path)
            detail, last = table.detail().first(), table.history(1).first()
        except AnalysisException as error:
            raise JobError(f"{path} cannot be read as delta: {str(error).splitlines()[0]}") from error
        assert detail is not None, "a table has details"
        assert last is not None, "a table has a version"
        return cls(spark, path, options, detail["id"], last["version"], unquote(detail["location"]).rstrip("/"))

    @property
    def log(self) -> CommitLog:
        return CommitLog(self.spark, self.path, self.root)

    def earlier_ids(self) -> list[str]:
        """Return the ids that the table had before `CREATE OR REPLACE TABLE`, the latest first."""
        return [id for id in self.log.ids() if id != self.id]

    def require_loaded(self, mark: TableMark) -> None:
        """Raise JobError if the table's history contains a different commit for the version that is marked as
        loaded."""
        if mark.loaded is None:
            return
        if mark.loaded <= self.version and (not mark.commit or self.log.digest(mark.loaded) in (mark.commit, "")):
            return
        raise JobError(
            f"{self.path} is not the table that was loaded last, up to version {mark.loaded}: it is a copy of it, or "
            "was restored from a backup, so new rows cannot be told from others. Load it under another --name, which "
            "sends all rows"
        )

    def between(self, since: int | None, until: int) -> list[DataFrame]:
        """Return the rows of a version that an earlier one lacks, in parts; all rows if the earlier one is None.

        Raises JobError if the log between them or the files to compare are gone.
        """
        if since is None:
            return [self._whole(until)]
        commits = self.log.commits(since, until)
        if any(commit.removed for commit in commits.values()):
            return self._difference(self._change(commits, since, until))
        return self._added(commits, until)

    def gone(self, since: int, until: int) -> tuple[DataFrame, DataFrame] | None:
        """Return the rows of a version that a later one lacks, and all rows of the later one; None if no commit between
        them removed any.

        Raises JobError if the log between them or the files to compare are gone.
        """
        commits = self.log.commits(since, until)
        if not any(commit.removed for commit in commits.values()):
            return None
        before, after, old, new = self._change(commits, since, until)
        removed, added = _only(before, old), _only(after, new)
        there = added.select(_said(after.columns).alias("said"))
        return removed.join(there, _said(before.columns) == there["said"], "left_anti"), after

    def _change(self, commits: Mapping[int, Commit], since: int, until: int) -> _Change:
        """Return the differences between two versions. Raises JobError if files of the first one are gone."""
        before, after = self._whole(since), self._whole(until)
        old, new = set(before.inputFiles()), set(after.inputFiles())
        # A file replaces itself if marks of deleted rows are added or, by RESTORE, removed.
        marked = old & new & set[str]().union(*(commit.added for commit in commits.values()))
        vectors: dict[str, str] = {}
        for commit in commits.values():  # the first commit says what a file had in the earlier version
            vectors = commit.vectors | vectors
        needed = {vectors.get(file, "") for file in old - new | marked} - {""}
        self._require((old - new) | needed, since)
        return _Change(before, after, old - new | marked, new - old | marked)

    def _whole(self, version: int) -> DataFrame:
        return read_table(self.spark, self.path, "delta", {**self.options, "versionAsOf": str(version)})

    def _added(self, commits: Mapping[int, Commit], until: int) -> list[DataFrame]:
        added = set[str]().union(*(commit.added for commit in commits.values()))
        if not added:
            return []
        here = self._whole(until)
        present = added & set(here.inputFiles())
        parts = [_only(here, present)] if present else []
        # Rows that were added and are now in other files are read from the version that added them.
        return parts + [
            _only(self._whole(version), commit.added - present)
            for version, commit in commits.items()
            if commit.added - present
        ]

    def _difference(self, change: _Change) -> list[DataFrame]:
        before, after, old, new = change
        if not new:
            return []
        said, removed, added = _said(after.columns), _only(before, old), _only(after, new)
        gone = removed.groupBy(_said(before.columns).alias("said")).agg(F.count("*").alias("copies"))
        if removed.count() <= MOST_BROADCAST and not _has_more_copies(added, gone):
            # Each task reads its rows in file order: batches are the same if it is run again.
            return [added.join(F.broadcast(gone), said == gone["said"], "left_anti")]
        piece = "_metadata.file_path", "_metadata.file_block_start"
        row, digest = F.monotonically_increasing_id().alias("_row"), said.alias("_said")
        # Of equal rows, old ones come first: those in files of the earlier version.
        copies = Window.partitionBy("_said").orderBy(F.desc(_is_in(old)), *piece, "_row")
        numbered = added.select("*", "_metadata", row, digest).withColumn("_copy", F.row_number().over(copies))
        counted = numbered.join(gone, numbered["_said"] == gone["said"], "left")
        left = counted.where(numbered["_copy"] > F.coalesce(gone["copies"], F.lit(0)))
        # Put back into file order, in tasks whose number depends only on the files.
        return [left.repartition(len(new), *piece).sortWithinPartitions(*piece, "_row")]

    def _require(self, files: set[str], version: int) -> None:
        """Raise JobError if files of a version are gone. There can be many: Spark looks for them, but reads none.

        With Spark Connect, it only looks when it is asked for columns.
        """
        if not files:
            return
        try:
            with listing_in_few_tasks(self.spark):
                _ = self.spark.read.format("binaryFile").load([without_globs(file) for file in sorted(files)]).columns
        except AnalysisException as error:
            raise JobError(
                f"VACUUM has deleted files of version {version} of {self.path}, which was loaded last, so rows that "
                "are new, or deleted since, cannot be told from others. Load it under another --name, which sends all "
                "rows and cancels none. Load more often than files are deleted (delta.deletedFileRetentionDuration, a "
                "week by default)"
            ) from error


def _said(columns: Sequence[str]) -> Column:
    """Return a digest that distinguishes rows: of their values by name, without nulls."""
    row = F.to_json(F.struct(*(f"`{name}`" for name in sorted(columns))), {"timestampFormat": _TO_THE_MICROSECOND})
    return F.unhex(F.substring(F.sha2(row, 256), 1, 32))


def _has_more_copies(added: DataFrame, gone: DataFrame) -> bool:
    """Return whether some row was added more often than removed. There are few removed rows."""
    both = added.select(_said(added.columns).alias("said")).join(F.broadcast(gone), "said")
    return not both.groupBy("said", "copies").count().where("count > copies").isEmpty()


def _only(table: DataFrame, files: set[str]) -> DataFrame:
    return table.where(_is_in(files))


def _is_in(files: set[str]) -> Column:
    """Return whether a row is in one of these files."""
    # The path is quoted there, and unquoting would turn a plus into a space.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return path.isin(sorted(files))
