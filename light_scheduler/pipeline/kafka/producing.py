"""Converts rows to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException, Producer
from pyspark.sql.types import StructType

_WAIT_S = 0.05
_SERVE_EVERY = 1_000
_FLUSH_S = 120.0

Headers = list[tuple[str, Any]]
"""(name, bytes or None) each."""

COLUMNS = ("key", "value", "topic", "partition", "headers")


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise ValueError if rows of a schema cannot be records, or their topic is unknown."""
    names = set(schema.fieldNames())
    if "value" not in names:
        raise ValueError("a column value (binary or string) is required")
    if unknown := sorted(names - set(COLUMNS)):
        raise ValueError(f"column {unknown[0]} is not known; use {', '.join(COLUMNS)}")
    if topic is None and "topic" not in names:
        raise ValueError("give the option topic or a column topic: where rows go")


class Sender:
    """Passes records to a producer and tracks which of them failed."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self._failure: Any = None
        self.count = 0
        """Number of records passed on."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Pass on a record, waiting while the queue is full. Raises KafkaException if an earlier record failed."""
        to: dict[str, Any] = {} if partition is None else {"partition": partition}
        while True:
            try:
                self.producer.produce(topic, value, key, headers=headers, on_delivery=self._on_delivery, **to)
                break
            except BufferError:  # until some records are acknowledged
                self.producer.poll(_WAIT_S)
        self.count += 1
        if self.count % _SERVE_EVERY == 0:
            self.producer.poll(0)
            self._raise_failure()

    def finish(self) -> None:
        """Wait until every record is acknowledged. Raises KafkaException or TimeoutError."""
        left = self.producer.flush(_FLUSH_S)
        self._raise_failure()
        if left:
            raise TimeoutError(f"{left} records were not acknowledged within {_FLUSH_S:g} s")

    def _on_delivery(self, error: Any, _message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise KafkaException(self._failure)


def send_batches(delivery: Sender, batches: Iterable[pa.RecordBatch], topic: str | None) -> None:
    """Send the rows of batches. The option `topic` overrides the column. Raises ValueError for a row without a
    topic."""
    for batch in batches:
        count = batch.num_rows
        for key, value, own_topic, partition, headers in zip(
            _column(batch, "key", count),
            _column(batch, "value", count),
            _column(batch, "topic", count),
            _column(batch, "partition", count),
            _headers(batch, count),
            strict=True,
        ):
            to = topic or own_topic
            if not to:
                raise ValueError("a row's topic is null, and there is no option topic")
            delivery.send(to, _bytes(key), _bytes(value), headers, partition)


def _column(batch: pa.RecordBatch, name: str, count: int) -> list[Any]:
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * count


def _headers(batch: pa.RecordBatch, count: int) -> Iterator[Headers | None]:
    if "headers" not in batch.schema.names:
        yield from [None] * count
        return
    column = batch.column("headers")
    pairs = list(zip(column.values.field(0).to_pylist(), column.values.field(1).to_pylist(), strict=True))
    ends = column.offsets.to_pylist()
    yield from (pairs[start:end] for start, end in pairwise(ends))


def _bytes(content: bytes | str | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
