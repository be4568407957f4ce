"""Carrying out plain firings, without the values that the general way makes in between.

Nearly all firings of most applications are plain: a message of the default tenant is delivered, and its schedule is
gone. Of anything else nothing is decided here: it is left for the general way (`firings`), which comes to the same for
plain ones, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from light_scheduler.engine import is_plain_turn
from light_scheduler.kafka.batches import RecordTooLargeError
from light_scheduler.model import DEFAULT_TENANT, Entry, EventType
from light_scheduler.tables.whole import WholeSchedules
from light_scheduler.wire import partition_for
from light_scheduler.wire.plain import HISTORY_KEY, IDENTITY, fired_lines
from light_scheduler.wire.state import SCHEDULE_KIND

from .transaction import Transaction

_STATE_KEY = SCHEDULE_KIND + IDENTITY


class PlainFirings:
    """Carries plain firings out, as part of a transaction in which nothing special holds for the default tenant."""

    def __init__(self, transaction: Transaction) -> None:
        context = transaction.context
        self._transaction = transaction
        self._events = transaction.history.events
        self._delivered = transaction.delivered
        self._add = transaction.batches.add
        self._now = transaction.now
        self._rules = context.rules
        self._targets = context.targets
        self._partitions: dict[str, int] = {}  # target topic -> its partitions, 0 if it is for the general way
        self._message_of = context.dialect.delivered
        self._source_topic = context.commands_topic.encode()
        self._changelog = context.changelog

    @cached_property
    def _history(self) -> tuple[str, int]:
        context = self._transaction.context
        return context.own_place(context.names.history)

    @cached_property
    def _line(self) -> Callable[[str, int, int, int, int, str], bytes]:
        return fired_lines(self._now, self._transaction.context.partition)

    @cached_property
    def _schedules(self) -> WholeSchedules:
        return self._transaction.overlay.whole_of(DEFAULT_TENANT)

    def fire(self, entry: Entry) -> bool:
        """Deliver the message of a schedule that wakes, if that is all there is to do; tell whether it is done."""
        schedule, progress = entry.schedule, entry.progress
        if schedule.tenant != DEFAULT_TENANT or not is_plain_turn(schedule, progress, self._now, self._rules):
            return False
        target = schedule.target
        topic = target.topic
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = self._partitions_of(topic)
        if not partitions or target.partition is not None:
            return False
        id = schedule.id.encode()
        if not self._schedules.is_whole(id):
            return False
        payload, headers = self._message_of(entry, self._now, self._source_topic)
        key = target.key if target.partition_key is None else target.partition_key
        place = topic, partition_for(id if key is None else key, partitions)
        try:
            self._add(place, target.key, payload, headers, origin=entry)
        except RecordTooLargeError:
            return False
        self._delivered.append(entry)
        self._schedules.remove(id)
        self._add(self._changelog, _STATE_KEY + id, None)
        line = self._line(schedule.id, schedule.version, progress.due, progress.sequence, progress.attempt, topic)
        self._add(self._history, HISTORY_KEY + id, line)
        self._events[EventType.FIRED] += 1
        return True

    def _partitions_of(self, topic: str) -> int:
        known = self._targets[topic]
        return 0 if known.refusal is not None or known.is_compacted else known.partitions
