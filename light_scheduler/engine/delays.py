"""How a delay rule handles the records of its source: when each is due, and where it goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from light_scheduler.durations import format_duration
from light_scheduler.model.delay import DelayRule
from light_scheduler.model.topic_configuration import TopicConfiguration
from light_scheduler.wire import partition_for


class TimedRecord(Protocol):
    """A record of a source; `timestamp` is UTC epoch ms, negative if it has none."""

    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def due_of(timestamp: int, delay: int) -> int:
    """Return when a record is due (UTC epoch ms); one without a timestamp is due at once."""
    return timestamp + delay if timestamp >= 0 else 0


def timestamp_of(timestamp: int, delay: int, now: int) -> int:
    """Return the timestamp of the forwarded record: the instant it was due.

    So the delays of a chain add up to the millisecond, however late each hop is.
    """
    return timestamp + delay if timestamp >= 0 else now


def due_head(records: Iterable[TimedRecord], delay: int, now: int, most: int, most_bytes: int) -> int:
    """Count the records at the head that are due, at least one of them whatever its size.

    A record that is due behind one that is not waits for it: order is kept.
    """
    count = size = 0
    for record in records:
        size += len(record.key or b"") + len(record.value or b"")
        if count == most or due_of(record.timestamp, delay) > now or (count and size > most_bytes):
            break
        count += 1
    return count


def target_partition(key: bytes | None, partition: int, source_partitions: int, target_partitions: int) -> int:
    """Return where a record of a partition goes: the same number, if the target has as many partitions; else by key.

    Without a key all records of a partition go to one, so that their order is kept.
    """
    if target_partitions >= source_partitions:
        return partition
    return partition % target_partitions if key is None else partition_for(key, target_partitions)


def retention_problem(rule: DelayRule, config: TopicConfiguration) -> str | None:
    """Say what in the configuration of a rule's source topic lets waiting records go before they are due, if any."""
    if config.expires_records and 0 <= config.retention_ms <= rule.delay:
        return (
            f"topic {rule.source} keeps records for {format_duration(config.retention_ms)}, and rule {rule.name} needs "
            f"them for {format_duration(rule.delay)}: raise its retention.ms well above that"
        )
    if config.is_compacted and config.min_compaction_lag_ms <= rule.delay:
        return (
            f"topic {rule.source} is compacted: of waiting records of rule {rule.name} with the same key only the last "
            f"may be forwarded; raise its min.compaction.lag.ms well above {format_duration(rule.delay)}"
        )
    return None
