"""What a cycle adds for other partitions of its commands topic."""

from __future__ import annotations

from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.relay import Count, count_headers, forwarded

from .batches import RecordBatches
from .targets import TargetTopic


class Relay:
    """Writes to the partitions of a commands topic, as part of a cycle's batches; `partition` is the lane's own."""

    def __init__(self, name: str, partition: int, topic: TargetTopic, batches: RecordBatches) -> None:
        self._name = name
        self._partition = partition
        self._partitions = topic.partitions
        self._limit = topic.max_message_bytes
        self._batches = batches

    @property
    def partitions(self) -> range:
        """All of them."""
        return range(self._partitions)

    def is_home(self, key: bytes) -> bool:
        """Tell whether a key belongs to this lane's own partition."""
        return partition_for(key, self._partitions) == self._partition

    def home_of(self, key: bytes) -> int:
        """Return the partition that a key belongs to."""
        return partition_for(key, self._partitions)

    def copy(self, record: CommandRecord, partition: int) -> None:
        """Pass a command on. Raises RecordTooLargeError."""
        self._batches.add((self._name, partition), record.key, record.value, forwarded(record), limit=self._limit)

    def report(self, count: Count, partition: int) -> None:
        """Say how many schedules a command for many has changed here."""
        self._batches.add((self._name, partition), None, None, count_headers(count))
