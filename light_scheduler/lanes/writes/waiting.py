"""Stores records for unavailable partitions of the commands topic in the state of the lane, where they wait.

A transaction fails if any partition that it writes to is unavailable. A command may have to be forwarded to such a
partition, or copied to it and all others. That neither rejects the command nor holds up other work:

    1. A record for a partition that is `away` is stored in the lane's state, in the transaction that would have sent
       it. While any waits, all later ones for that partition are stored too, so none overtakes another.
    2. When the partition is back, cycles send the waiting records, in order. Each record leaves the queue in the
       transaction that writes it to the partition.
    3. A record that cannot be sent any more leaves the queue in the transaction that deals with it (see
       `cycle.stranded`): the topic that it was for was deleted and created again, or takes only smaller records.

To the lane that reads the record, it only arrives later. Only the ends of a queue are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.model.place import Place
from light_scheduler.model.tenant_rules import QUOTA
from light_scheduler.wire.delayed_state import DelayedQueue
from light_scheduler.wire.waiting_state import (
    TenantPart,
    WaitingRecord,
    decode_tenant_part,
    decode_waiting,
    encode_tenant_part,
    encode_waiting,
    encode_waiting_queue,
    tenant_part_key,
    waiting_key,
    waiting_queue_key,
)

from .transaction import Transaction

NOT_AWAY: frozenset[int] = frozenset()

MOST_WAITING = 100_000
MOST_WAITING_BYTES = 256 << 20
"""Limits for a tenant in the queue for a partition: records, and their bytes. Further commands are rejected."""

Strand = Callable[[int, int, WaitingRecord, RecordTooLargeError | None], None]
"""Deals with a record that cannot be sent: (its partition, its number in the queue, the record, whether too large)."""


class WaitingWrites:
    """The waiting records in one cycle, for which partitions that are `away` are unavailable.

    `sent` is the number of records that it took out of queues, and `sent_to` are the partitions that it sent them to.
    """

    def __init__(self, transaction: Transaction, away: Collection[int] = NOT_AWAY) -> None:
        context, log = transaction.context, transaction.overlay.commands_log
        self._transaction = transaction
        self._topic = context.commands_topic
        self._topic_id = "" if log is None else log.topic_id
        self._there = context.targets[self._topic].partitions
        self._known = max(self._there, context.partitioning.partitions)
        self._away = away
        self._queues = transaction.overlay.others.waiting()
        self.sent = 0
        self.sent_to: list[Place] = []

    def __bool__(self) -> bool:
        """Return whether any record waits."""
        return bool(self._queues)

    @property
    def waiting(self) -> int:
        """The number of waiting records."""
        return sum(queue.waiting for queue in self._queues.values())

    @property
    def are_in_doubt(self) -> bool:
        """Whether records wait for a partition that the topic does not have: it may have been created again."""
        return any(partition >= self._there for partition in self._queues)

    def is_away(self, partition: int) -> bool:
        """Return whether a partition is unavailable."""
        return partition in self._away

    def is_gone(self, partition: int) -> bool:
        """Return whether the topic has no such partition, and the workers know of none."""
        return partition >= self._known

    def holds(self, partition: int) -> bool:
        """Return whether a record for a partition has to wait."""
        return partition in self._away or partition in self._queues or self.is_gone(partition)

    def require_room(self, partition: int, tenant: str) -> None:
        """Raise InvalidCommand, and count that, if as much of a tenant waits for a partition as may."""
        if not self.holds(partition):
            return
        part = self._part_of(partition, tenant)
        if part.waiting >= MOST_WAITING or part.size >= MOST_WAITING_BYTES:
            self._transaction.over_quota += 1
            raise InvalidCommand(
                f"{QUOTA}unsent_commands",
                f"{part.waiting} commands of tenant {tenant} wait for partition {partition}, which cannot be written "
                "to just now: send it again later",
            )

    def write(self, partition: int, record: WaitingRecord) -> None:
        """1. Send a record to a partition, or store it for later. Raises RecordTooLargeError."""
        if not self.holds(partition):
            self._transaction.batches.add((self._topic, partition), record.key, record.value, record.headers)
            return
        # It must fit into the topic when it is sent.
        self._transaction.batches.check(self._topic, record.key, record.value, record.headers)
        kept = encode_waiting(record._replace(topic_id=self._topic_id))
        queue = self._queues.get(partition, DelayedQueue())
        self._transaction.store_record(waiting_key(partition, queue.end), kept)
        self._keep(partition, DelayedQueue(queue.first, queue.end + 1, queue.size + len(kept)))
        self._count(partition, record.tenant, 1, len(kept))

    def send(self, limit: int, max_bytes: int, strand: Strand) -> int:
        """2. and 3. Send at most `limit` waiting records, or `max_bytes` of them. Return how many left their queues."""
        for partition in sorted(self._queues):
            if self._may_send(partition):
                while self.sent < limit and max_bytes >= 0 and (queue := self._queues.get(partition)) is not None:
                    max_bytes -= self._send_first(partition, queue, strand)
        return self.sent

    def _may_send(self, partition: int) -> bool:
        return self.is_gone(partition) or (partition < self._there and partition not in self._away)

    def _send_first(self, partition: int, queue: DelayedQueue, strand: Strand) -> int:
        """Take the first record out of a queue, and send it or have it dealt with. Return its size there."""
        key, place = waiting_key(partition, queue.first), (self._topic, partition)
        kept = self._transaction.overlay.others.get(key) or b""
        record = decode_waiting(kept)
        self._transaction.store_record(key, None)
        self._keep(partition, DelayedQueue(queue.first + 1, queue.end, queue.size - len(kept)))
        self._count(partition, record.tenant, -1, -len(kept))
        self.sent += 1
        if self.is_gone(partition) or self._is_of_another_topic(record):
            strand(partition, queue.first, record, None)
            return len(kept)
        try:
            self._transaction.batches.add(place, record.key, record.value, record.headers)
        except RecordTooLargeError as error:
            strand(partition, queue.first, record, error)
        else:
            if place not in self.sent_to:
                self.sent_to.append(place)
        return len(kept)

    def _is_of_another_topic(self, record: WaitingRecord) -> bool:
        return bool(record.topic_id and self._topic_id) and record.topic_id != self._topic_id

    def _part_of(self, partition: int, tenant: str) -> TenantPart:
        kept = self._transaction.overlay.others.get(tenant_part_key(partition, tenant))
        return TenantPart() if kept is None else decode_tenant_part(kept)

    def _count(self, partition: int, tenant: str, records: int, size: int) -> None:
        """Count what joins a tenant's part of a queue, or leaves it."""
        if tenant:
            part = self._part_of(partition, tenant)
            part = TenantPart(part.waiting + records, part.size + size)
            kept = encode_tenant_part(part) if part.waiting else None
            self._transaction.store_record(tenant_part_key(partition, tenant), kept)

    def _keep(self, partition: int, queue: DelayedQueue) -> None:
        if queue.waiting:
            self._queues[partition] = queue
            self._transaction.store_record(waiting_queue_key(partition), encode_waiting_queue(queue))
        else:
            del self._queues[partition]
            self._transaction.store_record(waiting_queue_key(partition), None)
