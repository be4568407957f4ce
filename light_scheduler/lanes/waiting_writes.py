"""Records for partitions of the commands topic that cannot be written to: they wait in the state of the lane.

A transaction fails if any partition that it writes to takes nothing. A command may have to be passed on to such a
partition, or copied to it with all others. It is neither refused for that, nor does anything else wait for it:

    1. A record for a partition that is `away` is kept in the lane's state, in the transaction that would have sent it.
       So is every later one for that partition while any waits: none overtakes another.
    2. When the partition is back, cycles send what waits, in order. Each record leaves the queue in the transaction
       that writes it to the partition.

To the lane that reads it, the record has arrived later, and nothing else is different. Nothing of a queue is in memory
but its ends.
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
    """Of one cycle; partitions that are `away` take nothing in it.

    `sent` is how many records it took out of queues, and `sent_to` those of which partitions.
    """

    def __init__(self, transaction: Transaction, away: Collection[int] = NOT_AWAY) -> None:
        self._transaction = transaction
        self._topic = transaction.context.commands_topic
        self._away = away
        self._queues = transaction.overlay.others.waiting()
        self.sent = 0
        self.sent_to: list[Place] = []
        self.too_large: str | None = None
        """Why nothing more is sent to a partition that is back."""

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return bool(self._queues)

    @property
    def waiting(self) -> int:
        """How many records wait."""
        return sum(queue.waiting for queue in self._queues.values())

    def is_away(self, partition: int) -> bool:
        """Return whether a partition takes nothing."""
        return partition in self._away

    def holds(self, partition: int) -> bool:
        """Return whether a record for a partition has to wait."""
        return partition in self._away or partition in self._queues

    def write(self, partition: int, record: WaitingRecord) -> None:
        """1. Send a record to a partition, or keep it for that. Raises RecordTooLargeError."""
        if not self.holds(partition):
            self._transaction.batches.add((self._topic, partition), *record)
            return
        self._transaction.batches.check(self._topic, *record)  # it is to fit in there when it is sent
        queue, kept = self._queues.get(partition, DelayedQueue()), encode_waiting(record)
        self._transaction.store_record(waiting_key(partition, queue.end), kept)
        self._keep(partition, DelayedQueue(queue.first, queue.end + 1, queue.size + len(kept)))

    def send(self, limit: int, max_bytes: int) -> int:
        """2. Send at most `limit` records that wait, or `max_bytes` of them; return how many.

        What has become too large for its topic waits on, and so does what is behind it; and what is for a partition
        that the topic has not got, since somebody has made it anew with fewer.
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
