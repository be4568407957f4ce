"""Reads topics to their end, and converts their records for the checker."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.topic_admin import admin_client, awaited

from .checker import Record

_SILENT = logging.Logger("light_scheduler.bench.chaos.reading", logging.CRITICAL + 1)
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_CHUNK = 5_000
_TIMEOUT_S = 60.0
_HANGING_MS = 2_000
"""How long a broker may not answer before other brokers are asked for the current leaders."""


def reader(bootstrap_servers: str) -> Consumer:
    """Return a read_committed consumer that starts at the beginning."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "chaos-checker",  # librdkafka requires one; nothing is committed
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": _HANGING_MS,
            "fetch.message.max.bytes": 4_000_000,
        },
        logger=_SILENT,
    )


def record_of(message: Any) -> Record:
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
    )


def places(consumer: Consumer, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic, each at its beginning."""
    described = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    return [TopicPartition(topic, partition, 0) for partition in described.partitions]


def read_topic(bootstrap_servers: str, topic: str) -> Iterator[Record]:
    """Yield all committed records of a topic that is no longer written to, in order within each partition.

    Waits for open transactions and for their markers. Raises BrokerError.
    """
    ends = ends_of(bootstrap_servers, topic)
    consumer = reader(bootstrap_servers)
    try:
        consumer.assign(places(consumer, topic))
        deadline = time.monotonic() + _TIMEOUT_S
        while ends:
            for message in consumer.consume(_CHUNK, 0.2):
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + _TIMEOUT_S
                    yield record_of(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # the last stable offset
                    partition, offset = message.partition(), message.offset()
                    if partition is not None and offset is not None and offset >= ends.get(partition, 0):
                        ends.pop(partition, None)
                else:
                    raise KafkaException(error)
            if time.monotonic() > deadline:
                raise BrokerError(f"{topic} could not be read to its end within {_TIMEOUT_S:g} s: {ends} left")
    except KafkaException as error:
        raise BrokerError(f"{topic} could not be read: {error}") from error
    finally:
        consumer.close()


def ends_of(bootstrap_servers: str, topic: str) -> dict[int, int]:
    """Return the end of each partition, including uncommitted records."""
    admin = admin_client(bootstrap_servers)
    described = admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    asked = {TopicPartition(topic, partition): _LATEST for partition in described.partitions}
    futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_TIMEOUT_S)
    answers = {
        place: awaited(future, _TIMEOUT_S, f"looking for the end of {topic}") for place, future in futures.items()
    }
    return {place.partition: answer.offset for place, answer in answers.items()}
