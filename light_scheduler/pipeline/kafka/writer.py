"""The writers: each writes a task's rows, with or without a transaction.

Without the option `transactionalId`, rows are written by an idempotent producer: at least once, since a retried task
writes again. With it, a task's rows and a mark that they are written are one transaction, and a task whose mark exists
writes nothing. A job is not atomic over its tasks: readers see them one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import Producer
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from .idle import IdleClients
from .marks import Mark, MarkedProducer
from .options import WriteOptions
from .producing import Sender, check_columns, send_batches
from .silence import SILENT

BATCH_ID = "streaming.sql.batchId"
"""The local property with the number of a task's micro-batch."""


@dataclass
class Written(WriterCommitMessage):
    """A task's report: the number of records, and whether they had been written before."""

    task: int
    records: int
    repeated: bool = False


class KafkaBatchWriter(DataSourceArrowWriter):
    """Writes a table once.

    Its mark is the option `writeId`, or one generated for this write. A later write with the same id and the same
    partitioning only adds rows of tasks that the first one did not complete.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = WriteOptions.parse(options)
        check_columns(schema, self._options.topic)
        self._mark = Mark(1, self._options.write_id or str(uuid.uuid4()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        if self._options.transactional_id is None:
            return Written(task.partitionId(), _write(self._options, iterator))
        return _write_once(self._options, task, iterator, self._mark, lambda there: there.note == self._mark.note)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; with a transactional id exactly once. Its mark is the number of the micro-batch."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = WriteOptions.parse(options)
        check_columns(schema, self._options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        if self._options.transactional_id is None:
            return Written(task.partitionId(), _write(self._options, iterator))
        batch = int(task.getLocalProperty(BATCH_ID) or 0)
        return _write_once(self._options, task, iterator, Mark(batch, ""), lambda there: there.position >= batch)


_idle = IdleClients(lambda configuration: Producer(dict(configuration), logger=SILENT), Producer.flush)


def _write(options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> int:
    held = _idle.take(options.client)
    delivery = Sender(held.client)
    send_batches(delivery, batches, options.topic)
    delivery.finish()
    _idle.leave(held)
    return delivery.count


def _write_once(
    options: WriteOptions,
    task: TaskContext,
    batches: Iterator[pa.RecordBatch],
    mark: Mark,
    is_past: Callable[[Mark], bool],
) -> Written:
    number = task.partitionId()
    assert options.topic is not None, "WriteOptions holds that a transactional id comes with a topic"
    with MarkedProducer(options.client, f"{options.transactional_id}-{number}", options.topic) as marked:
        if is_past(marked.mark):
            for _ in batches:  # Spark waits until its rows are taken
                pass
            return Written(number, 0, repeated=True)
        with marked.transaction(mark) as producer:
            delivery = Sender(producer)
            send_batches(delivery, batches, options.topic)
            delivery.finish()
        return Written(number, delivery.count)


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "writers run in tasks"
    return task
