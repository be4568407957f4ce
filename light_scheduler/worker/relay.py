"""What a cycle adds for other partitions of its commands topic."""

from __future__ import annotations

from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.relay import Count, count_headers, forwarded

from .batches import RecordBatches
from .targets import TargetTopic


class Relay:
    """Writes to the partitions of a commands topic, as part of a cycle's batches."""

    def __init__(self, name: str, topic: TargetTopic, batches: RecordBatches) -> None:
        self._name = name
        self._limit = topic.max_message_bytes
        self._batches = batches
        self.partitions = range(topic.partitions)

    def home_of(self, key: bytes) -> int:
        """Return the partition that a key belongs to."""
        return partition_for(key, len(self.partitions))

    def copy(self, record: CommandRecord, partition: int) -> None:
        """Pass a command on. Raises RecordTooLargeError."""
        self._batches.add((self._name, partition), record.key, record.value, forwarded(record), limit=self._limit)

    def report(self, count: Count, partition: int) -> None:
        """Say how many schedules a command for many has changed here."""
        self._batches.add((self._name, partition), None, None, count_headers(count))
