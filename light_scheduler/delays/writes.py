"""The records of a delay lane's transactions: forwarded records, dead letters, and the new position."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from aiokafka import TopicPartition

from light_scheduler.engine.delays import due_of, target_partition, timestamp_of
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import Command, Unreadable
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.kafka.target_lookup import TopicFacts
from light_scheduler.model import DEFAULT_TENANT, DeadLetter, DeadLetterCause, DelayRule, TopicNames
from light_scheduler.wire import encode_dead_letter
from light_scheduler.wire.delays import DelayPosition, encode_position, position_key
from light_scheduler.wire.events import CONTENT_TOO_LARGE, CONTENT_UNREAD

log = logging.getLogger(__name__)


class Writes:
    """Builds the records for a rule and a partition of its source.

    `topic_id` is the id of the source whose offsets are used. `culprit` is the offset of a record that is known to be
    refused, and the reason.
    """

    def __init__(self, rule: DelayRule, tp: TopicPartition, names: TopicNames, targets: TopicFacts) -> None:
        self._rule = rule
        self._tp = tp
        self._names = names
        self._targets = targets
        self.topic_id = ""
        self.culprit: tuple[int, str] | None = None

    def forwarding(self, records: Iterable[Command], position: int, now: int) -> tuple[RecordBatches, int]:
        """Return the records that forward `records` and store a new position, and the number of dead letters among
        them."""
        targets, rule = self._targets, self._rule
        target, source_count = targets[rule.target], targets[rule.source].partitions
        batches = RecordBatches(now)
        dead_letters = 0
        for record in records:
            reason = self._why_not(record)
            if reason is None:
                batches.timestamp = timestamp_of(record.timestamp, rule.delay, now)
                partition = target_partition(record.key, self._tp.partition, source_count, target.partitions)
                try:
                    batches.add(
                        (rule.target, partition),
                        record.key,
                        record.value,
                        record.headers,
                        limit=target.max_message_bytes,
                    )
                    continue
                except RecordTooLargeError as error:
                    reason = str(error)
            batches.timestamp = now
            self._add_dead_letter(batches, record, reason, now)
            dead_letters += 1
        batches.timestamp = now
        self._add_position(batches, position)
        return batches, dead_letters

    def moving(self, position: int, now: int) -> RecordBatches:
        """Return the records that only store a new position."""
        batches = RecordBatches(now)
        self._add_position(batches, position)
        return batches

    def _add_position(self, batches: RecordBatches, position: int) -> None:
        key = position_key(self._rule.name, self._tp.topic, self._tp.partition)
        batches.add((self._names.delay_positions, 0), key, encode_position(DelayPosition(position, self.topic_id)))

    def _why_not(self, record: Command) -> str | None:
        if isinstance(record.headers, Unreadable):
            return f"{record.headers.reason}: see the source for its content"
        if self.culprit is not None and self.culprit[0] == record.offset:
            return self.culprit[1]
        if record.key is None and self._targets[self._rule.target].is_compacted:
            return f"topic {self._rule.target} is compacted and takes no message without a key"
        return None

    def _add_dead_letter(self, batches: RecordBatches, record: Command, reason: str, now: int) -> None:
        topic = self._names.dead_letters
        place = topic, self._tp.partition % self._targets[topic].partitions
        rule, tp = self._rule, self._tp
        log.warning(
            "delay %s of %s-%d: the record at offset %d becomes a dead letter: %s",
            rule.name,
            *tp,
            record.offset,
            reason,
        )

        is_readable = not isinstance(record.headers, Unreadable)
        letter = DeadLetter(
            DeadLetterCause.REFUSED,
            f"delay rule {rule.name}: {reason}",
            None,
            DEFAULT_TENANT,
            None,
            now,
            due=due_of(record.timestamp, rule.delay) if has_time(record) else None,
            target_topic=rule.target,
            source_partition=tp.partition,
            source_offset=record.offset,
            key=record.key,
            value=record.value,
            headers=list(record.headers) if is_readable else [],
            is_tenant_known=False,  # a rule has no tenant: users who see all tenants see its letters
        )
        limit = self._targets[topic].max_message_bytes
        key, value, headers = encode_dead_letter(letter, tp.topic)
        try:
            batches.add(place, key, value, headers if is_readable else [*headers, CONTENT_UNREAD], limit=limit)
        except RecordTooLargeError:
            ours = headers[len(letter.headers) :]
            batches.add(place, None, None, [*ours, CONTENT_TOO_LARGE], limit=limit)


def has_time(record: Command) -> bool:
    """Return whether the time of a record is known: it is not if the record has no timestamp or is unreadable."""
    return record.timestamp >= 0 and not isinstance(record.headers, Unreadable)
