"""The log of a Delta table: which files a commit added and removed, and which commit it is.

A copy of a table keeps the table's id, and so does a backup: both can get another commit of the same version.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError

_COMMIT = "add struct<path:string,dataChange:boolean>, remove struct<path:string,dataChange:boolean>"
_METADATA = "metaData struct<id:string>"
_WHOLE = re.compile("[a-z][a-z0-9+.-]*:/|/")
_GLOBS = re.compile(r"[\\*?{}\[\]]")
_DIGEST_DIGITS = 32


class Commit(NamedTuple):
    """The paths of the files by which a commit changed the data."""

    added: set[str]
    removed: set[str]


class CommitLog(NamedTuple):
    """The log of the table at a path.

    `root` is the path as Spark writes those of the table's files. These are whole paths here, nothing in them quoted:
    of tables that were converted, folders have files of the same names.
    """

    spark: SparkSession
    path: str
    root: str

    def commits(self, since: int, until: int) -> dict[int, Commit]:
        """Return the commits after a version, up to another one. Raises JobError if one is gone."""
        return {version: self.commit(version) for version in range(since + 1, until + 1)}

    def commit(self, version: int) -> Commit:
        """Return the commit of a version. Raises JobError if it is gone."""
        try:
            log = self.spark.read.schema(_COMMIT).json(self._file(version))
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

    def digest(self, version: int) -> str:
        """Return what tells the commit of a version from another one of the same version; nothing if it is gone."""
        try:
            log = self.spark.read.text(self._file(version), wholetext=True)
            found = log.select(F.sha2("value", 256).alias("digest")).first()
        except AnalysisException:
            return ""
        return "" if found is None else str(found["digest"])[:_DIGEST_DIGITS]

    def ids(self) -> list[str]:
        """Return the ids that the table has had, the last one first.

        A table that was replaced goes on with the log and the versions of its predecessor; one that was dropped and
        created again begins anew.
        """
        reader = self.spark.read.schema(_METADATA).option("pathGlobFilter", "*.json")
        changes = reader.json(self._folder).where("metaData.id is not null")
        rows = changes.select("metaData.id", F.col("_metadata.file_name").alias("commit")).collect()
        return list(dict.fromkeys(row.id for row in sorted(rows, key=lambda row: str(row.commit), reverse=True)))

    def _file(self, version: int) -> str:
        return f"{self._folder}/{version:020}.json"

    @property
    def _folder(self) -> str:
        return f"{without_globs(self.path.rstrip('/'))}/_delta_log"

    def _whole_path(self, logged: str) -> str:
        """Return the path of a file that the log has relative to the table, or whole if it is elsewhere."""
        path = unquote(logged)
        return path if _WHOLE.match(path) else f"{self.root}/{path}"


def without_globs(path: str) -> str:
    """Return a path for Spark's readers, which take braces, brackets and the like in it for a pattern."""
    return _GLOBS.sub(r"\\\g<0>", path)
