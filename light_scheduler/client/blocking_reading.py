"""Following a topic from its end or its beginning, outside any consumer group, committed records only: blocking."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from .blocking_producer import SILENT
from .librdkafka_errors import NO_ANSWER, failure, librdkafka_errors
from .records import ReadRecord, record_of

_POLL_S = 0.1
_BATCH = 500

_PASSING = (*NO_ANSWER, KafkaError.GROUP_AUTHORIZATION_FAILED)
"""Errors that reading goes on after. librdkafka looks the group up, though nothing is committed or joined under it: who
reads needs no right to a group."""


class BlockingReader:
    """Reads partitions of one topic. To be iterated and closed in one thread; `stop` is for others."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._is_stopped = False

    @classmethod
    def open(
        cls,
        options: Mapping[str, Any],
        topic: str,
        partitions: Iterable[int],
        timeout: float,
        *,
        from_beginning: bool = False,
    ) -> Self:
        """Return a reader that has its position already: whatever is committed from here on will be read.

        `timeout` is in seconds, for each partition. Raises BrokerError.
        """
        consumer = Consumer(
            {
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                **options,
                # The name is required; nothing is committed or joined under it.
                "group.id": f"light-scheduler-client-{uuid.uuid4()}",
                "enable.auto.commit": False,
            },
            logger=SILENT,
        )
        try:
            with librdkafka_errors(f"cannot read {topic}"):
                places = []
                for partition in sorted(partitions):
                    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout)
                    places.append(TopicPartition(topic, partition, first if from_beginning else end))
                consumer.assign(places)
        except BaseException:
            consumer.close()
            raise
        return cls(consumer, topic)

    def __iter__(self) -> Iterator[ReadRecord]:
        """Yield records until `stop`. Raises BrokerError."""
        while not self._is_stopped:
            for message in self._consumer.consume(_BATCH, _POLL_S):
                error: Any = message.error()
                if error is None:
                    yield cast(ReadRecord, record_of(message))
                elif not (error.retriable() or error.code() in _PASSING):
                    raise failure(f"cannot read {self._topic}", error)

    def stop(self) -> None:
        """Have the iteration end, soon."""
        self._is_stopped = True

    def close(self) -> None:
        self._consumer.close()
