"""Records in the form that codecs read, from any Kafka client."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from light_scheduler.model import Headers
from light_scheduler.wire import CommandRecord


class ReadRecord(NamedTuple):
    """A record read from a topic. `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def record_of(record: Any) -> CommandRecord:
    """Return a record in the form that codecs read. confluent-kafka's `Message` has methods instead of attributes.

    Records of aiokafka and kafka-python are returned unchanged.
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
