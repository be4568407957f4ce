"""The readers: they plan ranges (in the driver's process) and read them (in a worker's)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from .fetching import WHAT_TO_DO, DataLossError, read_range
from .log_ends import LogEnds, Offsets
from .options import ReadOptions, TopicPart
from .positions import Position
from .ranges import OffsetRange, limited, planned
from .rows import record_batch

SparkOffsets = dict[str, Any]
"""A position in JSON as in checkpoints; see `positions`."""


class _Ranges:
    """Reads the rows of a range. Common base of both readers."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self._options = ReadOptions.parse(options, streaming=streaming)
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, OffsetRange):  # Spark passes another one if there are no ranges
            return
        for chunk in read_range(self._options, partition):
            yield record_batch(chunk, partition.topic, partition.partition, self._schema)

    def _planned(self, starts: Offsets, ends: Offsets) -> list[OffsetRange]:
        return planned(
            [OffsetRange(*part, starts[part], end) for part, end in sorted(ends.items())],
            at_least=self._options.min_partitions,
            longest=self._options.max_records_per_partition,
        )


class KafkaBatchReader(_Ranges, DataSourceReader):
    """Reads what the logs contain when the query is planned."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, streaming=False)

    def partitions(self) -> list[OffsetRange]:
        with LogEnds(self._options) as logs:
            starts, ends = logs.starts(), logs.ends()
        return self._planned(starts, ends)


class KafkaStreamReader(_Ranges, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Continues at the position in the checkpoint. Partitions that are added to a topic later are read from their
    beginning.

    A topic that was deleted and created again is a DataLossError, and so is a log that ends before the position. With
    `failOnDataLoss` false, the new topic is read from its beginning.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, streaming=True)
        self._logs: LogEnds | None = None
        self._last: Position | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_logs": None}  # the reader is also sent to workers; connections are not

    def initialOffset(self) -> SparkOffsets:  # noqa: N802 (Spark's name)
        ids = self._connected().ids()  # before the offsets, so that a topic replaced in between is detected
        return Position(self._connected().starts(), ids).json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._latest()

    def reportLatestOffset(self) -> SparkOffsets:  # noqa: N802
        return self._latest().json()

    def latestOffset(self, start: SparkOffsets, limit: ReadLimit) -> SparkOffsets:  # noqa: N802
        at, latest = Position.of(start), self._latest()
        if self._last is not None and not self._last.replaced(latest.ids):
            latest = self._last
        starts = self._starts(at, latest)
        ends = {part: self._end(part, offset, latest) for part, offset in starts.items()}
        if isinstance(limit, ReadMaxRows):
            ends = limited(starts, ends, limit.max_rows)
        return Position(ends, {**at.ids, **latest.ids}).json()

    def partitions(self, start: SparkOffsets, end: SparkOffsets) -> list[OffsetRange]:
        to = Position.of(end)
        self._check_for_loss(to, self._connected().ids())  # a batch may be planned long before it is run
        return self._planned(self._starts(Position.of(start), to), dict(to.offsets))

    def stop(self) -> None:
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _latest(self) -> Position:
        ids = self._connected().ids()
        return Position(self._connected().latest(), ids)

    def _starts(self, at: Position, to: Position) -> Offsets:
        """Return where to begin between two positions, including new partitions."""
        replaced = self._check_for_loss(at, to.ids)
        starts = {part: offset for part, offset in at.offsets.items() if part[0] not in replaced}
        if to.offsets.keys() <= starts.keys():
            return starts
        earliest, known = self._connected().earliest(), {topic for topic, _ in starts}
        # An added partition begins at 0: deleted records of it were never read.
        new = {part: 0 if part[0] in known else earliest.get(part, 0) for part in to.offsets if part not in starts}
        return starts | new

    def _check_for_loss(self, at: Position, ids: Mapping[str, str]) -> set[str]:
        """Return the topics that were replaced since a position. Raises DataLossError if that is not allowed."""
        replaced = at.replaced(ids)
        for topic, (before, after) in replaced.items():
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"topic {topic} was deleted and created again: its id was {before} and is {after}. What was not "
                    f"read of it is gone. {WHAT_TO_DO}"
                )
        return set(replaced)

    def _end(self, part: TopicPart, start: int, latest: Position) -> int:
        end = latest.offsets.get(part, start)  # a topic that is no longer read keeps its position
        if end < start and self._options.fail_on_data_loss:
            log = f"{part[0]}-{part[1]}"
            raise DataLossError(f"{log} ends at offset {end} and was read up to {start}: it was cut off. {WHAT_TO_DO}")
        return max(start, end)

    def _connected(self) -> LogEnds:
        if self._logs is not None and not self._logs.is_current:
            self._logs.close()
            self._logs = None
        if self._logs is None:
            self._logs = LogEnds(self._options)
        return self._logs
