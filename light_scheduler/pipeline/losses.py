"""Gaps of an archive: records that were deleted before it read them, if it was allowed to continue without them.

    PATH/_losses   Parquet: the `offset` from which on a partition of a topic is complete again; null: the topic was
                   created again, and its offsets start over

Missing offsets in an archive do not show a gap, because transaction markers take offsets too. So each run compares the
beginnings of logs with the position of the stream: when it starts, every few seconds, and at its end.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError

from .job import Cluster
from .kafka.log_ends import TIMEOUT_S, LogEnds
from .kafka.options import ReadOptions, TopicPart
from .kafka.positions import Position
from .tables import if_there

log = logging.getLogger(__name__)

_LOSSES = "topic string, partition int, offset bigint"
_FOLDER = "_losses"

_ANSWER_S = 5.0
"""Time-out of each of the two requests of a look, so that regular looks do not delay a stop."""


class Loss(NamedTuple):
    """A row of the folder."""

    topic: str
    partition: int
    offset: int | None

    @property
    def part(self) -> TopicPart:
        return self.topic, self.partition


class Logs(Protocol):
    """Queries about the topics, with a time-out (s); implemented by `LogEnds`."""

    def ids(self, timeout: float) -> Mapping[str, str]: ...

    def earliest_of(self, parts: Collection[TopicPart], timeout: float) -> Mapping[TopicPart, int]: ...


class LossWatch:
    """Records what is deleted from topics before a stream has read it. `at` is the stream's position; None: not
    begun."""

    def __init__(self, logs: Logs, at: Position | None, note: Callable[[list[Loss]], None]) -> None:
        self._logs = logs
        self._at = at
        self._note = note
        self._noted: set[Loss] = set()
        self._noted_at: dict[TopicPart, int] = {}

    def look(self, reached: Position | None, timeout: float = TIMEOUT_S, *, is_last: bool = False) -> None:
        """Record what has been deleted beyond the stream's position at the last look; `reached` is its current
        position.

        The stream may have read some of that in between, but everything that it misses is recorded. While it makes no
        progress, further deletions are recorded once it has moved, or at the last look. Raises KafkaException.
        """
        if self._at is not None:
            found = lost_behind(self._at, self._logs, timeout)
            lost = [loss for loss in found if loss not in self._noted and (is_last or not self._waits(loss, reached))]
            if lost:
                self._note(lost)
                self._noted.update(lost)
                self._noted_at.update({loss.part: self._at.offsets[loss.part] for loss in lost if loss.offset})
        self._at = self._at if reached is None else reached

    def _waits(self, loss: Loss, reached: Position | None) -> bool:
        """Return whether a loss at this position is already recorded, and the stream has not moved."""
        assert self._at is not None, "a loss is behind a place"
        if loss.offset is None:
            return False
        at = self._at.offsets[loss.part]
        return self._noted_at.get(loss.part) == at and (reached is None or reached.offsets.get(loss.part, at) <= at)

    def look_if_possible(self, reached: Position | None) -> None:
        """Same as `look`, but if a loss can neither be found nor recorded, the next look covers the same position
        again."""
        try:
            self.look(reached, _ANSWER_S)
        except (KafkaException, PySparkException, Py4JError) as error:
            log.warning("cannot look for records that were deleted before they were read; trying again: %s", error)

    def end(self, reached: Position | None) -> None:
        """Look a last time, if the broker answers."""
        try:
            self.look(reached, _ANSWER_S, is_last=True)
        except KafkaException as error:
            log.warning("cannot look for records that were deleted last, before they were read: %s", error)


def lost_behind(at: Position, logs: Logs, timeout: float = TIMEOUT_S) -> list[Loss]:
    """Return what has been deleted from topics beyond a position. Raises KafkaException."""
    replaced = at.replaced(logs.ids(timeout))
    begins = logs.earliest_of([part for part in at.offsets if part[0] not in replaced], timeout)
    return [
        *(Loss(topic, 0, None) for topic in replaced),
        *(
            Loss(topic, partition, begins[topic, partition])
            for (topic, partition), reached in at.offsets.items()
            if topic not in replaced and begins.get((topic, partition), 0) > reached
        ),
    ]


@contextmanager
def noting_losses(
    spark: SparkSession, path: str, checkpoint: str, cluster: Cluster, topics: Sequence[str]
) -> Iterator[LossWatch]:
    """Record in an archive what has been deleted from topics beyond its stream's position, before and within the block.

    Raises JobError if topics cannot be read.
    """

    def note(lost: list[Loss]) -> None:
        spark.createDataFrame(lost, _LOSSES).coalesce(1).write.mode("append").parquet(f"{path}/{_FOLDER}")

    with LogEnds(ReadOptions.parse({**cluster.options(), "subscribe": ",".join(topics)}, streaming=True)) as logs:
        watch = LossWatch(logs, position(spark, checkpoint), note)
        try:
            watch.look(None)
        except KafkaException as error:
            raise JobError(f"{', '.join(topics)} cannot be read: {error.args[0].str()}") from error
        yield watch


def position_in(progress: Mapping[str, Any] | None) -> Position | None:
    """Return the position up to which a stream has read, from Spark's progress report; None if it has not read yet."""
    end = None if progress is None else progress["sources"][0]["endOffset"]
    decoded = json.loads(end) if isinstance(end, str) else end
    return Position.of(decoded) if decoded else None


def losses(spark: SparkSession, path: str, topics: Collection[str]) -> dict[TopicPart, int]:
    """Return, for partitions with a gap, the offset from which on the archive is complete.

    Raises JobError if it contains two topics with the same name.
    """
    noted = if_there(lambda: spark.read.schema(_LOSSES).parquet(f"{path}/{_FOLDER}"))
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


def position(spark: SparkSession, checkpoint: str) -> Position | None:
    """Return the position after the last completed micro-batch of a stream; None if there is none."""
    finished = if_there(lambda: spark.read.text(f"{checkpoint}/commits"))
    if finished is None:
        return None
    number = F.max(F.col("_metadata.file_name").cast("int")).alias("last")
    last = finished.agg(number).first()
    if last is None or last["last"] is None:
        return None
    planned = spark.read.text(f"{checkpoint}/offsets/{last['last']}", wholetext=True).first()
    assert planned is not None, "what was planned is written down first"
    return Position.of(json.loads(planned["value"].strip().splitlines()[-1]))
