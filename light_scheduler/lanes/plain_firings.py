"""Carrying out plain firings of one-shots, without the values that the general way makes in between.

Nearly all firings of most applications are plain: a message of the default tenant is delivered, and its schedule is
gone. Of anything else nothing is decided here: it is left for the general way (`firings`), which comes to the same for
plain ones, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from light_scheduler.engine import is_plain_turn
from light_scheduler.model import DEFAULT_TENANT, Entry, EventType
from light_scheduler.tables.whole import WholeSchedules
from light_scheduler.wire.plain import HISTORY_KEY, IDENTITY, fired_lines
from light_scheduler.wire.state import SCHEDULE_KIND

from .plain_messages import PlainMessages
from .transaction import Transaction

_STATE_KEY = SCHEDULE_KIND + IDENTITY


class PlainFirings:
    """Carries plain firings out, as part of a transaction in which nothing special holds for the default tenant."""

    def __init__(self, transaction: Transaction, messages: PlainMessages) -> None:
        context = transaction.context
        self._transaction = transaction
        self._events = transaction.history.events
        self._add = transaction.batches.add
        self._add_message = messages.add
        self._now = transaction.now
        self._rules = context.rules
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
        id = schedule.id.encode()
        if not self._schedules.is_whole(id) or not self._add_message(entry, id):
            return False
        self._schedules.remove(id)
        self._add(self._changelog, _STATE_KEY + id, None)
        topic = schedule.target.topic
        line = self._line(schedule.id, schedule.version, progress.due, progress.sequence, progress.attempt, topic)
        self._add(self._history, HISTORY_KEY + id, line)
        self._events[EventType.FIRED] += 1
        return True
