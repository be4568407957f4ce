"""The readers: which ranges there are (in the driver's process) and what is in one (in a worker's)."""

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

from .fetching import read_range
from .log_ends import LogEnds, Offsets
from .options import ReadOptions, flat, nested
from .ranges import OffsetRange, limited, planned
from .rows import record_batch

SparkOffsets = dict[str, Any]
"""`{topic: {partition: offset}}`, which checkpoints hold as JSON: the same as of Spark's own connector."""


class _Ranges:
    """What both readers share: a range's rows."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self._options = ReadOptions.parse(options, streaming=streaming)
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, OffsetRange):  # what Spark makes up when there are no ranges
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
    """Reads what the logs hold when the query is planned."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, streaming=False)

    def partitions(self) -> list[OffsetRange]:
        with LogEnds(self._options) as logs:
            starts, ends = logs.starts(), logs.ends()
        return self._planned(starts, ends)


class KafkaStreamReader(_Ranges, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on from the offsets in the checkpoint. Partitions that a topic gets later are read from their beginning."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, streaming=True)
        self._logs: LogEnds | None = None
        self._last: Offsets | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_logs": None}  # the reader goes to workers too; connections do not

    def initialOffset(self) -> SparkOffsets:  # noqa: N802 (Spark's name)
        return nested(self._connected().starts())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._connected().latest()

    def reportLatestOffset(self) -> SparkOffsets:  # noqa: N802
        return nested(self._connected().latest())

    def latestOffset(self, start: SparkOffsets, limit: ReadLimit) -> SparkOffsets:  # noqa: N802
        starts = flat(start)
        latest = self._connected().latest() if self._last is None else self._last
        starts = self._with_new_partitions(starts, latest)
        # A log that was deleted or truncated ends before what was read of it: stay, and let the read say so.
        ends = {part: max(offset, latest.get(part, 0)) for part, offset in starts.items()}
        if isinstance(limit, ReadMaxRows):
            ends = limited(starts, ends, limit.max_rows)
        return nested(ends)

    def partitions(self, start: SparkOffsets, end: SparkOffsets) -> list[OffsetRange]:
        ends = flat(end)
        return self._planned(self._with_new_partitions(flat(start), ends), ends)

    def stop(self) -> None:
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _with_new_partitions(self, starts: Offsets, ends: Offsets) -> Offsets:
        if ends.keys() <= starts.keys():
            return starts
        return self._connected().earliest() | starts

    def _connected(self) -> LogEnds:
        if self._logs is None:
            self._logs = LogEnds(self._options)
        return self._logs
