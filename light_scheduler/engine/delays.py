"""Decides for delay rules when each record of the source is due, and to which partition it goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from light_scheduler.durations import format_duration
from light_scheduler.model.delay import DelayRule
from light_scheduler.model.topic_configuration import TopicConfiguration
from light_scheduler.wire import partition_for


class TimedRecord(Protocol):
    """A record of a source. `timestamp` is UTC epoch ms, negative if it has none."""

    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def due_of(timestamp: int, delay: int) -> int:
    """Return when a record is due (UTC epoch ms). Without a timestamp, it is due immediately."""
    return timestamp + delay if timestamp >= 0 else 0


def timestamp_of(timestamp: int, delay: int, now: int) -> int:
    """Return the timestamp for the forwarded record, which is its due time.

    So the delays of a chain add up exactly, however late each hop is.
    """
    return timestamp + delay if timestamp >= 0 else now


def due_head(records: Iterable[TimedRecord], delay: int, now: int, most: int, most_bytes: int) -> int:
    """Count the due records at the head. The first one counts whatever its size.

    To keep the order, a due record waits for earlier records that are not due.
    """
    count = size = 0
    for record in records:
        size += len(record.key or b"") + len(record.value or b"")
        if count == most or due_of(record.timestamp, delay) > now or (count and size > most_bytes):
            break
        count += 1
    return count


def target_partition(key: bytes | None, partition: int, source_partitions: int, target_partitions: int) -> int:
    """Return the target partition of a record: the same number if the target has enough partitions, otherwise by key.

    Records without a key from one partition go to the same partition, to keep their order.
    """
    if target_partitions >= source_partitions:
        return partition
    return partition % target_partitions if key is None else partition_for(key, target_partitions)


def retention_problem(rule: DelayRule, config: TopicConfiguration) -> str | None:
    """Return why waiting records of a rule may be deleted from the source topic too early; None if they may not."""
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
