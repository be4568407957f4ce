"""Follows a topic from its end or its beginning: blocking, outside any consumer group, committed records only."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from light_scheduler.connection.renewed_files import Renewed

from .blocking_producer import SILENT
from .librdkafka_errors import NO_ANSWER, failure, librdkafka_errors
from .records import ReadRecord, record_of

_POLL_S = 0.1
_BATCH = 500

_PASSING = (*NO_ANSWER, KafkaError.GROUP_AUTHORIZATION_FAILED)
"""Errors after which reading continues. librdkafka looks up the group, although nothing is committed under it; reading
needs no right to a group."""


log = logging.getLogger(__name__)


class BlockingReader:
    """Reads partitions of one topic. Iterate and close it in one thread; other threads may call `stop`.

    When the options change, a new consumer continues at the position of the current one.
    """

    def __init__(self, options: Renewed[Mapping[str, Any]], topic: str) -> None:
        """Create a reader without partitions: use `open`."""
        self._options = options
        self._used = options.current()
        self._consumer = _new_consumer(self._used)
        self._places: list[TopicPartition] = []
        self._topic = topic
        self._is_stopped = False

    @classmethod
    def open(
        cls,
        options: Renewed[Mapping[str, Any]],
        topic: str,
        partitions: Iterable[int],
        timeout: float,
        *,
        from_beginning: bool = False,
    ) -> Self:
        """Return a reader that already has its position: it will read everything committed from now on.

        `timeout` is in seconds, for each partition. Raises BrokerError.
        """
        reader = cls(options, topic)
        try:
            with librdkafka_errors(f"cannot read {topic}"):
                reader.begin(partitions, timeout, from_beginning=from_beginning)
        except BaseException:
            reader.close()
            raise
        return reader

    def begin(self, partitions: Iterable[int], timeout: float, *, from_beginning: bool) -> None:
        """Take the start position in each partition: its beginning, or its current end."""
        for partition in sorted(partitions):
            place = TopicPartition(self._topic, partition)
            first, end = self._consumer.get_watermark_offsets(place, timeout=timeout)
            self._places.append(TopicPartition(self._topic, partition, first if from_beginning else end))
        self._consumer.assign(self._places)

    def __iter__(self) -> Iterator[ReadRecord]:
        """Yield records until `stop`. Raises BrokerError."""
        while not self._is_stopped:
            for message in self._consumer.consume(_BATCH, _POLL_S):
                error: Any = message.error()
                if error is None:
                    yield cast(ReadRecord, record_of(message))
                elif not (error.retriable() or error.code() in _PASSING):
                    raise failure(f"cannot read {self._topic}", error)
            if (options := self._options.current()) is not self._used:
                self._used = options
                self._renew()

    def stop(self) -> None:
        """Ask the iteration to end soon."""
        self._is_stopped = True

    def close(self) -> None:
        self._consumer.close()

    def _renew(self) -> None:
        """Replace the current consumer by a new one."""
        try:
            consumer = _new_consumer(self._used)
        except KafkaException as error:
            log.warning("a reader of %s goes on with its old certificates: %s", self._topic, error.args[0].str())
            return
        reached = self._consumer.position(self._places)
        self._places = [
            place if read.offset < 0 else read for place, read in zip(self._places, reached, strict=True)
        ]  # partitions without a position have not delivered records yet
        consumer.assign(self._places)
        before, self._consumer = self._consumer, consumer
        before.close()


def _new_consumer(options: Mapping[str, Any]) -> Consumer:
    return Consumer(
        {
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            **options,
            # A group id is required, although nothing is committed or joined under it.
            "group.id": f"light-scheduler-client-{uuid.uuid4()}",
            "enable.auto.commit": False,
        },
        logger=SILENT,
    )
