"""What is in topics, read without Spark."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from light_scheduler.model import Headers
from light_scheduler.testing import Kafka

TIMEOUT_S = 60.0
POLL_S = 0.1  # it is waited out unless there are as many records as asked for


class LogRecord(NamedTuple):
    """A record as it is in a log; `timestamp` is UTC epoch ms."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


def committed_records(kafka: Kafka, topic: str) -> list[LogRecord]:
    """Return all that is committed in a topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[LogRecord] = []
        open_partitions = set(partitions)
        while open_partitions:
            for message in consumer.consume(10_000, POLL_S):
                error = message.error()
                if error is None:
                    found.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise AssertionError(error)
    finally:
        consumer.close()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def _record(message: object) -> LogRecord:
    return LogRecord(
        message.key(),  # type: ignore[attr-defined]
        message.value(),  # type: ignore[attr-defined]
        message.headers() or [],  # type: ignore[attr-defined]
        message.partition(),  # type: ignore[attr-defined]
        message.offset(),  # type: ignore[attr-defined]
        message.timestamp()[1],  # type: ignore[attr-defined]
    )
