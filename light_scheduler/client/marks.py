"""A mark records the progress of a series of batches, in the same Kafka transaction as the last batch.

A mark is the committed offset and its metadata of a consumer group without members, for partition 0 of the commands
topic. After a crash, the program reads there which of its batches are in Kafka. The broker forgets a mark
`offsets.retention.minutes` (a week by default) after its last change.
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
"""End of the metadata: confluent-kafka reads up to the next zero byte, which librdkafka does not add."""


class Mark(NamedTuple):
    """The number of a batch, which grows, and the identity of its series."""

    batch: int
    identity: str


def offsets_of(mark: Mark, topic: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return a mark as offsets for a transaction."""
    return {TopicPartition(topic, 0): OffsetAndMetadata(mark.batch, mark.identity + _END)}


def read_mark(connection: Connection, group: str, topic: str) -> Mark | None:
    """Return the mark of a group; None if there is none. Blocks. Raises BrokerError.

    Waits until pending transactions that move the mark are decided, which aiokafka does not support.
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
