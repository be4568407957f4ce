"""Gaps of an archive: records that were deleted before it read them, if it was allowed to go on without them.

    PATH/_losses   Parquet: the `offset` from which on a partition of a topic is complete again; null: the topic was
                   created again, and its offsets begin anew

Missing offsets in an archive do not show a gap, because transaction markers take offsets too. So each run notes the gap
at its beginning, from the position where the last run stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError

from .job import Cluster
from .kafka.log_ends import LogEnds
from .kafka.options import ReadOptions, TopicPart
from .kafka.positions import Position

_LOSSES = "topic string, partition int, offset bigint"
_FOLDER = "_losses"


def note_losses(spark: SparkSession, path: str, checkpoint: str, cluster: Cluster, topics: Sequence[str]) -> None:
    """Note in an archive the records of topics that were deleted after the position where its stream stopped."""
    at = _position(spark, checkpoint)
    if at is None:
        return
    with LogEnds(ReadOptions.parse({**cluster.options(), "subscribe": ",".join(topics)}, streaming=True)) as logs:
        replaced, begins = at.replaced(logs.ids()), logs.earliest()
    lost: list[tuple[str, int, int | None]] = [(topic, 0, None) for topic in replaced]
    for (topic, partition), reached in at.offsets.items():
        if topic not in replaced and begins.get((topic, partition), 0) > reached:
            lost.append((topic, partition, begins[topic, partition]))
    if lost:
        spark.createDataFrame(lost, _LOSSES).coalesce(1).write.mode("append").parquet(f"{path}/{_FOLDER}")


def losses(spark: SparkSession, path: str, topics: Collection[str]) -> dict[TopicPart, int]:
    """Return, for partitions with a gap, the offset from which on the archive is complete.

    Raises JobError if it holds two topics of one name.
    """
    noted = _if_there(lambda: spark.read.schema(_LOSSES).parquet(f"{path}/{_FOLDER}"))
    if noted is None:
        return {}
    found = noted.where(F.col("topic").isin(list(topics)))
    if (replaced := found.where("offset is null").first()) is not None:
        raise JobError(
            f"the archive has records of two topics {replaced.topic}: it was deleted and created again, and archived "
            "with --allow-data-loss, so offsets repeat. Archive into a new table, and audit that"
        )
    rows = found.groupBy("topic", "partition").agg(F.max("offset").alias("offset")).collect()
    return {(row.topic, row.partition): row["offset"] for row in rows}


def _position(spark: SparkSession, checkpoint: str) -> Position | None:
    """Return up to where the last micro-batch has read that a stream has finished; None if it has none."""
    finished = _if_there(lambda: spark.read.text(f"{checkpoint}/commits"))
    if finished is None:
        return None
    number = F.max(F.col("_metadata.file_name").cast("int")).alias("last")
    last = finished.agg(number).first()
    if last is None or last["last"] is None:
        return None
    planned = spark.read.text(f"{checkpoint}/offsets/{last['last']}", wholetext=True).first()
    assert planned is not None, "what was planned is written down first"
    return Position.of(json.loads(planned["value"].strip().splitlines()[-1]))


def _if_there(read: Callable[[], DataFrame]) -> DataFrame | None:
    try:
        return read()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise
