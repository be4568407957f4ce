"""What is in topics, read without Spark."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from light_scheduler.model import Headers
from light_scheduler.testing import Kafka

from .waiting import eventually_blocking

TIMEOUT_S = 60.0
DECIDED_S = 120.0
"""In this time, a broker also ends a transaction whose producer was killed."""
POLL_S = 0.1  # it is waited out unless there are as many records as asked for


class LogRecord(NamedTuple):
    """A record as it is in a log; `timestamp` is UTC epoch ms."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


def decided_records(kafka: Kafka, topic: str) -> list[LogRecord]:
    """Return all that is committed in a topic, partition by partition, once every transaction there is decided."""
    await_decided(kafka, topic)
    return committed_records(kafka, topic)


def await_decided(kafka: Kafka, topic: str) -> None:
    """Wait until every transaction is decided that has records in a topic now.

    A broker answers a commit before it writes the markers of it, and until then nobody reads what was committed.
    """
    ends = _ends(kafka, topic, "read_uncommitted")

    def are_reached() -> bool:
        stable = _ends(kafka, topic, "read_committed")
        return all(stable[partition] >= end for partition, end in ends.items())

    eventually_blocking(are_reached, within=DECIDED_S, every=POLL_S, what=f"the transactions of {topic} to be decided")


def _ends(kafka: Kafka, topic: str, isolation_level: str) -> dict[int, int]:
    """Return where each partition of a topic ends for readers of an isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"{topic}-reader",
            "isolation.level": isolation_level,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        return {partition: _end(consumer, TopicPartition(topic, partition)) for partition in partitions}
    finally:
        consumer.close()


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """Return where a partition ends, also if its leader is not known at once."""

    def asked() -> tuple[int, int] | None:
        try:
            return consumer.get_watermark_offsets(place, timeout=TIMEOUT_S, cached=False)
        except KafkaException as error:
            if error.args[0].code() not in (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE):
                raise
            return None

    _, end = eventually_blocking(asked, every=POLL_S, what=f"the end of {place.topic}-{place.partition}")
    return end


def committed_records(kafka: Kafka, topic: str) -> list[LogRecord]:
    """Return all that is committed in a topic now, partition by partition."""
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
