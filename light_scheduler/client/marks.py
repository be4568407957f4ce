"""A mark: how far a series of batches got, committed in one transaction of Kafka with the records of the last one.

A mark is the committed offset, and its metadata, of a consumer group that has no members, for partition 0 of the
commands topic. Who is killed and starts again reads there which of its batches Kafka has. The broker forgets it
`offsets.retention.minutes` (a week by default) after it last moved.
"""

from __future__ import annotations

from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from light_scheduler.connection import Connection
from light_scheduler.connection.coordinators import settled

from .librdkafka_errors import failure

TIMEOUT_S = 15.0
_END = "\0"
"""Of the metadata: confluent-kafka reads on to the next zero byte, which librdkafka does not add."""


class Mark(NamedTuple):
    """A batch: its number, which grows, and what identifies the series that it is one of."""

    batch: int
    identity: str


def offsets_of(mark: Mark, topic: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return a mark as a transaction takes it."""
    return {TopicPartition(topic, 0): OffsetAndMetadata(mark.batch, mark.identity + _END)}


def read_mark(connection: Connection, group: str, topic: str) -> Mark | None:
    """Return the mark of a group; None if there is none. Blocks. Raises BrokerError.

    Waits until it is decided whether a transaction that moves it counts: aiokafka cannot ask for that.
    """
    consumer = Consumer(
        {
            **connection.librdkafka(),
            "group.id": group,
            "isolation.level": "read_committed",  # asks for marks of decided transactions only
            "enable.auto.commit": False,
            "log_level": 2,
        }
    )
    try:
        (found,) = settled(lambda: consumer.committed([Place(topic, 0)], timeout=TIMEOUT_S), TIMEOUT_S)
    except KafkaException as error:
        raise failure(f"cannot read the position of {group}", error.args[0]) from error
    finally:
        consumer.close()
    return Mark(found.offset, (found.metadata or "").removesuffix(_END)) if found.offset >= 0 else None
