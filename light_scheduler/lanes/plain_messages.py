"""Adding the messages of plain firings to a transaction."""

from __future__ import annotations

from light_scheduler.kafka.batches import RecordTooLargeError
from light_scheduler.model import Entry
from light_scheduler.wire import partition_for

from .transaction import Transaction


class PlainMessages:
    """Adds messages whose tenants have no rules; `now` (UTC epoch ms) is when they are delivered."""

    def __init__(self, transaction: Transaction) -> None:
        context = transaction.context
        self._delivered = transaction.delivered
        self._add = transaction.batches.add
        self._now = transaction.now
        self._targets = context.targets
        self._partitions: dict[str, int] = {}  # target topic -> its partitions, 0 if it is for the general way
        self._message_of = context.dialect.delivered
        self._source_topic = context.commands_topic.encode()

    def add(self, entry: Entry, id: bytes) -> bool:
        """Add the message of a schedule's next firing; tell whether it is done, or left for the general way."""
        target = entry.schedule.target
        topic = target.topic
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = self._partitions_of(topic)
        if not partitions or target.partition is not None:
            return False
        payload, headers = self._message_of(entry, self._now, self._source_topic)
        key = target.key if target.partition_key is None else target.partition_key
        place = topic, partition_for(id if key is None else key, partitions)
        try:
            self._add(place, target.key, payload, headers, origin=entry)
        except RecordTooLargeError:
            return False
        self._delivered.append(entry)
        return True

    def _partitions_of(self, topic: str) -> int:
        known = self._targets[topic]
        return 0 if known.refusal is not None or known.is_compacted else known.partitions
