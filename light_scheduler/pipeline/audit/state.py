"""State that an audit leaves for the next one: a folder of tables, on any file system that Spark writes to.

    PATH/watermarks            a row for each finished audit: its number, and its watermark
    PATH/open/slot=0, slot=1   schedules carried over, in turn: the next audit reads one slot and writes the other
    PATH/evidence/run=N        records read by audit N, by schedule; used only for schedules with a new fault
    PATH/faults/run=N          faults reported by audit N
    PATH/scratch               temporary files of the running audit

The row of the watermark is one file and written last. Until it exists, the previous audit is the last one, and the next
audit overwrites the files of an interrupted one.
"""

from __future__ import annotations

import re
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StructType

from light_scheduler.errors import JobError

from .faults import FaultKind
from .readings import COLUMNS, ROWS
from .watermark import Watermark

FAULTS = (
    "name string, tenant string, id string, lane int, due bigint, topic string, partition int, offset bigint, "
    "at bigint, key binary"
)
"""Faults that have been told: their kind is `name`. `key` is that of a finding, and empty instead of null: it is null
in faults of older versions.
"""

_WATERMARKS = "run int, watermark string"
_WHOSE = ["tenant", "id"]
_PLACE = ("topic", "partition", "offset")
_SLOTS = 2
_NO_KEY = b""
_RUN = re.compile(r"/evidence/run=(\d+)/")


class AuditState:
    """The state of the audits of one application. One audit at a time may use it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path.rstrip("/")
        self._scratch: dict[str, StructType] = {}

    def last(self) -> Watermark | None:
        """Return where the last audit ended, None if there was none. Raises JobError if the state cannot be read."""
        found = self._table("watermarks", _WATERMARKS).orderBy(F.desc("run")).first()
        return None if found is None else Watermark.decode(found["watermark"])

    def finish(self, watermark: Watermark) -> None:
        """Make an audit the last one, and empty its scratch tables."""
        row = self._spark.createDataFrame([(watermark.run, watermark.encode())], _WATERMARKS)
        row.coalesce(1).write.mode("append").parquet(f"{self._path}/watermarks")
        for place, schema in self._scratch.items():
            self._spark.createDataFrame([], schema).write.mode("overwrite").parquet(place)

    def carried(self, run: int) -> DataFrame:
        """Return the evidence that audit `run` carried over."""
        return self._table(f"open/slot={run % _SLOTS}", COLUMNS)

    def carry(self, run: int, evidence: DataFrame) -> None:
        """Write what audit `run` carries over."""
        evidence.write.mode("overwrite").parquet(f"{self._path}/open/slot={run % _SLOTS}")

    def keep_evidence(self, run: int, evidence: DataFrame) -> DataFrame:
        """Write what audit `run` has read, columns ROWS, and return it."""
        by_schedule = evidence.repartition(*_WHOSE).sortWithinPartitions(*_WHOSE)
        by_schedule.write.mode("overwrite").parquet(f"{self._path}/evidence/run={run}")
        return self._table(f"evidence/run={run}", ROWS)

    def evidence(self, run: int) -> DataFrame:
        """Return what audits up to number `run` have read."""
        return self._table("evidence", f"{COLUMNS}, run int").where(F.col("run") <= run).drop("run")

    def has_all_evidence(self, run: int) -> bool:
        """Return whether all that audits up to number `run` have read is there: people may delete what is old."""
        files = self._table("evidence", f"{COLUMNS}, run int").inputFiles()
        there = {int(found[1]) for found in map(_RUN.search, files) if found is not None}
        return there.issuperset(range(1, run + 1))

    def keep_faults(self, run: int, faults: DataFrame) -> None:
        """Write what audit `run` tells."""
        columns = [column.split()[0] for column in FAULTS.split(", ")]
        _with_keys(faults).select(*columns).write.mode("overwrite").parquet(f"{self._path}/faults/run={run}")

    def unreported(self, run: int, faults: DataFrame) -> DataFrame:
        """Return faults, with their command as `value`, that no audit up to number `run` has told.

        What is missing, and history tells of it, has been told if it was missing before its line was written.
        """
        recorded = self._table("faults", f"{FAULTS}, run int").where(F.col("run") <= run)
        told = [column.alias(f"told_{number}") for number, column in enumerate(_identity())]
        places = (F.col(column).alias(f"told_record_{column}") for column in _PLACE)
        before = recorded.select(*told, *places, F.col("key").alias("told_key"), F.col("at").alias("told_at"))
        same = [column.eqNullSafe(F.col(f"told_{number}")) for number, column in enumerate(_identity())]
        # Faults of older versions do not say whether history told of what is missing.
        is_old_one = F.col("told_key").isNull() & ((F.col("key") == F.lit(_NO_KEY)) | (F.col("at") == F.col("told_at")))
        place = F.concat_ws(":", *(F.col(f"told_record_{column}") for column in _PLACE)).cast("binary")
        was_untold = (F.col("told_key") == F.lit(_NO_KEY)) & (F.col("value") == place)
        same.append((F.col("key") == F.col("told_key")) | is_old_one | was_untold)
        return _with_keys(faults).join(before, reduce(Column.__and__, same), "left_anti")

    def scratch(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table of the audit that runs, and return it as it is there."""
        place = f"{self._path}/scratch/{name}"
        table.write.mode("overwrite").parquet(place)
        self._scratch[place] = table.schema
        return self._spark.read.schema(table.schema).parquet(place)

    def _table(self, name: str, schema: str) -> DataFrame:
        try:
            return self._spark.read.schema(schema).parquet(f"{self._path}/{name}")
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise JobError(f"{self._path} is not the state of an audit: {str(error).splitlines()[0]}") from error
            return self._spark.createDataFrame([], schema)


def _with_keys(faults: DataFrame) -> DataFrame:
    return faults.withColumn("key", F.coalesce("key", F.lit(_NO_KEY)))


def _identity() -> list[Column]:
    """Return what tells faults apart, beside `key`.

    What is missing has no record: the one to look at may be another one later. A copy has one, but of several firings
    with the same content, it may be that of another one later.
    """
    has_record = F.col("name") != FaultKind.MISSING.value
    place = [F.when(has_record, F.col(column)) for column in _PLACE]
    due = F.when(F.col("name") != FaultKind.DUPLICATE.value, F.col("due"))
    return [*map(F.col, ("tenant", "id", "name", "lane")), due, *place]
