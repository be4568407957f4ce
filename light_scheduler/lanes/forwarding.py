"""What a cycle adds for other partitions of its commands topic: copies of commands, and counts of bulk commands."""

from __future__ import annotations

from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.relay import Count, count_headers, forwarded

from .transaction import Transaction


class Forwarding:
    """Writes to the partitions of a commands topic, as part of a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        context = transaction.context
        self._topic = context.commands_topic
        self._partition = context.partition
        self._partitions = context.targets[context.commands_topic].partitions
        self._batches = transaction.batches

    @property
    def others(self) -> list[int]:
        """All partitions but the lane's own."""
        return [partition for partition in range(self._partitions) if partition != self._partition]

    def is_home(self, key: bytes) -> bool:
        """Tell whether a key belongs to this lane's own partition."""
        return partition_for(key, self._partitions) == self._partition

    def home_of(self, key: bytes) -> int:
        """Return the partition that a key belongs to."""
        return partition_for(key, self._partitions)

    def is_other(self, partition: int) -> bool:
        """Tell whether a partition is one of the topic, and not the lane's own."""
        return partition in range(self._partitions) and partition != self._partition

    def copy(self, record: CommandRecord, partition: int, token: str = "") -> None:  # nosec B107 # none
        """Pass a command on; `token` is given if it is a bulk command. Raises RecordTooLargeError."""
        self._batches.add((self._topic, partition), record.key, record.value, forwarded(record, token))

    def report(self, count: Count, partition: int) -> None:
        """Say how many schedules a bulk command has changed here."""
        self._batches.add((self._topic, partition), None, None, count_headers(count))
