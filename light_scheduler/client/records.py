"""Records as codecs take them, whatever Kafka client they come from."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from light_scheduler.model import Headers
from light_scheduler.wire import CommandRecord


class ReadRecord(NamedTuple):
    """A record that was read. `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def record_of(record: Any) -> CommandRecord:
    """Return a record as codecs take it: confluent-kafka's `Message` has methods, others have attributes.

    Those of aiokafka and kafka-python are returned as they are.
    """
    if not callable(getattr(record, "value", None)):
        return cast(CommandRecord, record)
    return ReadRecord(
        record.topic(),
        record.partition(),
        record.offset(),
        record.timestamp()[1],
        record.key(),
        record.value(),
        record.headers() or [],
    )
