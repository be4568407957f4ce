"""Stores records for unavailable partitions of the commands topic in the state of the lane, where they wait.

A transaction fails if any partition that it writes to is unavailable. A command may have to be forwarded to such a
partition, or copied to it and all others. That neither rejects the command nor holds up other work:

    1. A record for a partition that is `away` is stored in the lane's state, in the transaction that would have sent
       it. While any waits, all later ones for that partition are stored too, so none overtakes another.
    2. When the partition is back, cycles send the waiting records, in order. Each record leaves the queue in the
       transaction that writes it to the partition.

To the lane that reads the record, it only arrives later. Only the ends of a queue are in memory.
"""

from __future__ import annotations

from collections.abc import Collection

from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.model.place import Place
from light_scheduler.wire.delayed_state import DelayedQueue
from light_scheduler.wire.waiting_state import (
    WaitingRecord,
    decode_waiting,
    encode_waiting,
    encode_waiting_queue,
    waiting_key,
    waiting_queue_key,
)

from .transaction_writes import Transaction

NOT_AWAY: frozenset[int] = frozenset()


class WaitingWrites:
    """The waiting records in one cycle, for which partitions that are `away` are unavailable.

    `sent` is the number of records that it took out of queues, and `sent_to` are the partitions of these queues.
    """

    def __init__(self, transaction: Transaction, away: Collection[int] = NOT_AWAY) -> None:
        self._transaction = transaction
        self._topic = transaction.context.commands_topic
        self._away = away
        self._queues = transaction.overlay.others.waiting()
        self.sent = 0
        self.sent_to: list[Place] = []
        self.too_large: str | None = None
        """Why no more records are sent to a partition that is back, or None."""

    def __bool__(self) -> bool:
        """Return whether any record waits."""
        return bool(self._queues)

    @property
    def waiting(self) -> int:
        """The number of waiting records."""
        return sum(queue.waiting for queue in self._queues.values())

    def is_away(self, partition: int) -> bool:
        """Return whether a partition is unavailable."""
        return partition in self._away

    def holds(self, partition: int) -> bool:
        """Return whether a record for a partition has to wait."""
        return partition in self._away or partition in self._queues

    def write(self, partition: int, record: WaitingRecord) -> None:
        """1. Send a record to a partition, or store it for later. Raises RecordTooLargeError."""
        if not self.holds(partition):
            self._transaction.batches.add((self._topic, partition), *record)
            return
        self._transaction.batches.check(self._topic, *record)  # it must fit into the topic when it is sent
        queue, kept = self._queues.get(partition, DelayedQueue()), encode_waiting(record)
        self._transaction.store_record(waiting_key(partition, queue.end), kept)
        self._keep(partition, DelayedQueue(queue.first, queue.end + 1, queue.size + len(kept)))

    def send(self, limit: int, max_bytes: int) -> int:
        """2. Send at most `limit` waiting records, or `max_bytes` of them. Return how many.

        A record that has become too large for its topic waits on, and so do the records after it. So do records for a
        partition that no longer exists, as the topic was recreated with fewer.
        """
        there = range(self._transaction.context.targets[self._topic].partitions)
        for partition in [each for each in sorted(self._queues) if each in there and each not in self._away]:
            place = self._topic, partition
            while self.sent < limit and max_bytes >= 0 and (queue := self._queues.get(partition)) is not None:
                key = waiting_key(partition, queue.first)
                kept = self._transaction.overlay.others.get(key) or b""
                try:
                    self._transaction.batches.add(place, *decode_waiting(kept))
                except RecordTooLargeError as error:
                    self.too_large = f"what waits for partition {partition} cannot be sent any more: {error}"
                    break
                self._transaction.store_record(key, None)
                self._keep(partition, DelayedQueue(queue.first + 1, queue.end, queue.size - len(kept)))
                self.sent += 1
                max_bytes -= len(kept)
                if place not in self.sent_to:
                    self.sent_to.append(place)
        return self.sent

    def _keep(self, partition: int, queue: DelayedQueue) -> None:
        if queue.waiting:
            self._queues[partition] = queue
            self._transaction.store_record(waiting_queue_key(partition), encode_waiting_queue(queue))
        else:
            del self._queues[partition]
            self._transaction.store_record(waiting_queue_key(partition), None)
