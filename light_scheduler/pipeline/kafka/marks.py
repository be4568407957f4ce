"""Transactions that move a mark together with their records, so that nothing is written twice.

A mark is a position and a note, stored as the committed offset and its metadata of a consumer group without members,
for partition 0 of the topic that is written. It commits together with the records. The broker forgets it
`offsets.retention.minutes` (a week by default) after its last change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from light_scheduler.connection.coordinators import TIMEOUT_S, settled

from .silence import SILENT

_CONNECTION = ("bootstrap.servers", "security.", "sasl.", "ssl.")


class Mark(NamedTuple):
    """The progress of a writer. Position -1: nothing has been written."""

    position: int
    note: str


NOTHING_WRITTEN = Mark(-1, "")


class MarkedProducer:
    """A transactional producer and its mark, with the same name. A context manager.

    Creating one aborts an open transaction of an earlier producer with this name, and fences that producer.
    """

    def __init__(self, client: Mapping[str, Any], name: str, topic: str) -> None:
        self.producer = Producer({**client, "transactional.id": name}, logger=SILENT)
        self._place = topic, 0
        self._consumer = Consumer(
            {
                **{key: value for key, value in client.items() if key.startswith(_CONNECTION)},
                "group.id": name,
                "isolation.level": "read_committed",  # only returns marks of decided transactions
                "enable.auto.commit": False,
            },
            logger=SILENT,
        )
        try:
            self.producer.init_transactions(TIMEOUT_S)
            self.mark = self._committed()
        except BaseException:
            self._consumer.close()
            raise

    @contextmanager
    def transaction(self, mark: Mark) -> Iterator[Producer]:
        """Commit the records produced in the block together with a mark. Abort both if the block raises."""
        self.producer.begin_transaction()
        try:
            yield self.producer
            place = TopicPartition(*self._place, offset=mark.position, metadata=mark.note)
            self.producer.send_offsets_to_transaction([place], self._consumer.consumer_group_metadata(), TIMEOUT_S)
            self.producer.commit_transaction(TIMEOUT_S)
        except BaseException:
            self.producer.abort_transaction(TIMEOUT_S)
            raise
        self.mark = mark

    def _committed(self) -> Mark:
        (place,) = settled(lambda: self._consumer.committed([TopicPartition(*self._place)], timeout=TIMEOUT_S))
        return Mark(place.offset, place.metadata or "") if place.offset >= 0 else NOTHING_WRITTEN

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._consumer.close()
