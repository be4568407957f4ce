"""Adds the messages of plain firings to a transaction."""

from __future__ import annotations

from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Entry
from light_scheduler.model.place import Place
from light_scheduler.wire import partition_for


class PlainMessages:
    """Adds messages of tenants without rules to a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        context = transaction.context
        self._delivered = transaction.delivered
        self._add = transaction.batches.add
        self._now = transaction.now
        self._targets = context.targets
        self._places: dict[str, list[Place]] = {}  # by target topic; empty if it needs the general path
        self._message_of = context.dialect.delivered
        self._source_topic = context.commands_topic.encode()
        self._headers_of = context.dialect.fired_headers(self._now, self._source_topic)

    def add(self, entry: Entry, id: bytes) -> bool:
        """Add the message of a schedule's next firing. Return False if it needs the general path."""
        schedule = entry.schedule
        target = schedule.target
        topic = target.topic
        places = self._places.get(topic)
        if places is None:
            places = self._places[topic] = self._places_of(topic)
        if not places or target.partition is not None:
            return False
        if self._headers_of is None:
            payload, headers = self._message_of(entry, self._now, self._source_topic)
        else:
            payload, headers = schedule.payload, self._headers_of(entry, id)
        key = target.key if target.partition_key is None else target.partition_key
        place = places[partition_for(id if key is None else key, len(places))]
        try:
            self._add(place, target.key, payload, headers, origin=entry)
        except RecordTooLargeError:
            return False
        self._delivered.append(entry)
        return True

    def _places_of(self, topic: str) -> list[Place]:
        known = self._targets[topic]
        if known.refusal is not None or known.is_compacted:
            return []
        return [(topic, partition) for partition in range(known.partitions)]
