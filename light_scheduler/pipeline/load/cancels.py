"""Cancels the schedules of rows that were deleted from a Delta table since its last load.

The old form of a changed row is deleted, too. So a schedule is cancelled only if no row of the table has its tenant and
id any more.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.clock import SystemClock
from light_scheduler.engine import Limits
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Headers
from light_scheduler.pipeline.kafka.options import WriteOptions
from light_scheduler.wire.native import NATIVE, header_name

from .marks import BatchMark, MarkingProducer, key_of
from .records import Record, RecordMaker

_OWNERS = "tenant binary, id binary, key binary"
_NAMES = [column.split()[0] for column in _OWNERS.split(", ")]
_WHOSE = ["tenant", "id"]
_ROWS = 20_000
_CANCEL = (header_name("command"), b"cancel")
_DEFAULT_TENANT = DEFAULT_TENANT.encode()


@dataclass(frozen=True)
class CancelTask:
    """The work of each Spark task, sent to it as a pickle: sends a cancel for each owner, exactly once.

    `scope` is that of the marks. `run` identifies this run of the load.
    """

    topic: str
    name: str
    marks_topic: str
    connection: Mapping[str, str]
    scope: tuple[Any, ...]
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the number of cancels that this run has sent, for each batch."""
        task = TaskContext.get()
        assert task is not None, "Spark calls it"
        client = WriteOptions.parse({**self.connection, "topic": self.topic}).client
        producer: MarkingProducer | None = None
        for batch in batches:
            if producer is None:
                name = f"{self.name}-{self.topic}-cancels-{task.partitionId()}"
                producer = MarkingProducer(client, name, self.connection, self.marks_topic)
            rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            yield pa.RecordBatch.from_pydict({"sent": pa.array([self._sent(producer, rows)], pa.int64())})

    def _sent(self, producer: MarkingProducer, rows: list[tuple[bytes, bytes, bytes]]) -> int:
        key = key_of("cancels", *self.scope, rows)
        mark = producer.marks.get(key, BatchMark)
        if mark is None:
            mark = BatchMark(SystemClock().now(), len(rows), by=self.run, sent=len(rows))
            with producer.transaction({key: mark}) as delivery:
                for tenant, id, entity_key in rows:
                    delivery.send(self.topic, entity_key, None, _headers(tenant, id, entity_key))
        return mark.sent if mark.by == self.run else 0


def cancel(gone: DataFrame, after: DataFrame, maker: RecordMaker, task: CancelTask) -> int:
    """Cancel the schedules of deleted rows, unless the table still has their ids. Return their number.

    The same rows always make the same batches, regardless of how they were partitioned.
    """
    were, there = _owners(gone, maker, only_valid=True), _owners(after, maker)
    owners = were.groupBy(*_WHOSE).agg(F.min("key").alias("key")).join(there, _WHOSE, "left_anti")
    owners = owners.select("tenant", "id", "key").persist()
    try:
        tasks = owners.count() // _ROWS + 1
        in_order = owners.repartition(tasks, *_WHOSE).sortWithinPartitions(*_WHOSE)
        found = in_order.mapInArrow(task, "sent bigint").agg(F.sum("sent").alias("sent")).first()
    finally:
        owners.unpersist()
    return 0 if found is None or found["sent"] is None else int(found["sent"])


def _owners(rows: DataFrame, maker: RecordMaker, *, only_valid: bool = False) -> DataFrame:
    """Return tenant, id and record key of the rows' schedules. `only_valid` omits ids that no schedule can have."""
    there = set(rows.columns)  # an earlier version may have had fewer
    reader = replace(maker, columns=tuple(column for column in maker.columns if column.name in there))

    def owners(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [(tenant or _DEFAULT_TENANT, id, key) for tenant, id, key in reader.owners(reader.read(batch))]
            if only_valid:
                found = [owner for owner in found if is_valid(*owner, reader.limits)]
            columns = list(zip(*found, strict=True)) or [(), (), ()]
            yield pa.RecordBatch.from_arrays([pa.array(column, pa.binary()) for column in columns], names=_NAMES)

    return rows.select(*(F.col(f"`{column.name}`") for column in reader.columns)).mapInArrow(owners, _OWNERS)


def is_valid(tenant: bytes, id: bytes, key: bytes, limits: Limits) -> bool:
    """Return whether a schedule can have this tenant and id: otherwise its cancel would become a dead letter."""
    try:
        limits.check_id(NATIVE.decode(Record(key, None, _headers(tenant, id, key), 0, 0, 0)).id)
    except InvalidCommand:
        return False
    return True


def _headers(tenant: bytes, id: bytes, key: bytes) -> Headers:
    headers: Headers = [_CANCEL]
    if id != key:
        headers.append((header_name("id"), id))
    if tenant != _DEFAULT_TENANT:
        headers.append((header_name("tenant"), tenant))
    return headers
