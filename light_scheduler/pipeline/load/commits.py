"""The log of a Delta table: the files that each commit added and removed, and the identity of a commit.

A copy or backup of a table keeps the table's id, and can get a different commit with the same version.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import without_globs

from .few_tasks import in_few_tasks

_VECTOR = "deletionVector:struct<storageType:string,pathOrInlineDv:string>"
_COMMIT = (
    f"add struct<path:string,dataChange:boolean>, remove struct<path:string,dataChange:boolean,{_VECTOR}>, "
    "commitInfo struct<operation:string>"
)
_REMOVED = "remove.path", "remove.dataChange", "remove.deletionVector"
_METADATA = "metaData struct<id:string>"
_COMMIT_FILE = r"^([0-9]{20})\.json$"
"""Names of commits. Other files of the log belong to checkpoints, or contain several commits again."""
_WHOLE = re.compile("[a-z][a-z0-9+.-]*:/|/")
_DIGEST_DIGITS = 32
_UUID_DIGITS = 20
_Z85 = digits + ascii_lowercase + ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
_B85 = digits + ascii_uppercase + ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


class Commit(NamedTuple):
    """The paths of the files by which a commit changed the data.

    `vectors` maps removed or replaced files to the paths of their deletion vectors, whether or not the data changed.
    The path is empty if a file had none, or has it in the log.
    """

    added: set[str]
    removed: set[str]
    vectors: dict[str, str]


class CommitLog(NamedTuple):
    """The log of the table at a path.

    `root` is the path as Spark writes those of the table's files. These are absolute and unquoted here: converted
    tables can have files of the same name in different folders.
    """

    spark: SparkSession
    path: str
    root: str

    def commits(self, since: int, until: int) -> dict[int, Commit]:
        """Return the commits after one version, up to another, in order. Raises JobError if one is gone."""
        if since == until:
            return {}
        file = F.struct(F.col("add.path").alias("added"), *_REMOVED)
        changes = F.collect_list(F.when(F.expr("add.dataChange or remove is not null"), file))
        try:
            found = self._between(since, until).groupBy("version").agg(changes.alias("files")).collect()
        except AnalysisException as error:
            raise self._gone(since + 1) from error
        files = {row.version: row.files for row in found}
        wanted = range(since + 1, until + 1)
        if missing := [version for version in wanted if version not in files]:
            raise self._gone(missing[0])
        return {version: self._commit(files[version]) for version in wanted}

    def restores(self, since: int, until: int) -> bool:
        """Return whether a commit after one version, up to another, restored an earlier version of the table."""
        return self._between(since, until).where("commitInfo.operation = 'RESTORE'").first() is not None

    def digest(self, version: int) -> str:
        """Return a digest that distinguishes a version's commit from other commits with the same version; empty if it
        is gone."""
        try:
            log = self.spark.read.text(self._file(version), wholetext=True)
            found = log.select(F.sha2("value", 256).alias("digest")).first()
        except AnalysisException:
            return ""
        return "" if found is None else str(found["digest"])[:_DIGEST_DIGITS]

    def ids(self) -> list[str]:
        """Return all ids of the table, the latest first.

        A table that was replaced continues its predecessor's log and versions; one that was dropped and created again
        starts over.
        """
        changes = in_few_tasks(self._log(_METADATA).where("metaData.id is not null"))
        rows = changes.select("metaData.id", "version").collect()
        return list(dict.fromkeys(row.id for row in sorted(rows, key=lambda row: int(row.version), reverse=True)))

    def _between(self, since: int, until: int) -> DataFrame:
        return in_few_tasks(self._log(_COMMIT).where(F.col("version").between(since + 1, until)))

    def _log(self, schema: str) -> DataFrame:
        """Return the fields of a schema from all commits in the log, and the `version` of each line.

        Spark opens only files whose names pass a filter by `version`.
        """
        log = self.spark.read.schema(schema).option("pathGlobFilter", "*.json").json(self._folder)
        version = F.regexp_extract("_metadata.file_name", _COMMIT_FILE, 1).try_cast("bigint")
        return log.select("*", version.alias("version")).where("version is not null")

    def _gone(self, version: int) -> JobError:
        return JobError(
            f"{self.path} no longer has the log of its version {version}, so new rows cannot be told from others. "
            "Load it under another --name, which sends all rows"
        )

    def _commit(self, files: Sequence[Row]) -> Commit:
        """Return a commit, given its lines: each has the path of an added or a removed file."""
        return Commit(
            {self._whole_path(added) for added, *_ in files if added},
            {self._whole_path(removed) for _, removed, is_change, _ in files if removed and is_change},
            {self._whole_path(removed): self._vector(vector) for _, removed, _, vector in files if removed},
        )

    def _file(self, version: int) -> str:
        return f"{self._folder}/{version:020}.json"

    def _vector(self, vector: Row | None) -> str:
        """Return the path of a deletion vector; empty if there is none or it has no file of its own."""
        if vector is None or vector.storageType == "i":
            return ""
        return self._whole_path(vector_path(vector.storageType, vector.pathOrInlineDv))

    @property
    def _folder(self) -> str:
        return f"{without_globs(self.path.rstrip('/'))}/_delta_log"

    def _whole_path(self, logged: str) -> str:
        """Return the absolute path of a file, which the log has relative to the table unless the file is elsewhere."""
        path = unquote(logged)
        return path if _WHOLE.match(path) else f"{self.root}/{path}"


def vector_path(storage: str, place: str) -> str:
    """Return the path of a deletion vector's file, decoded from the log: with "u" an optional folder of the table and
    the file's UUID in Z85; with "p" the path."""
    if storage == "p":
        return place
    folder, digits = place[:-_UUID_DIGITS], place[-_UUID_DIGITS:]
    name = f"deletion_vector_{uuid.UUID(bytes=base64.b85decode(digits.translate(_TO_B85)))}.bin"
    return f"{folder}/{name}" if folder else name
