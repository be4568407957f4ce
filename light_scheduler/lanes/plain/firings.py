"""Executes plain firings of one-shots, without the intermediate values of the general path.

Nearly all firings of most applications are plain: a message of the default tenant is delivered, and its schedule is
gone. All others are left for the general path (`firings`). For plain firings, that has the same result, byte for byte.
"""

from __future__ import annotations

from light_scheduler.engine import is_plain_turn
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import DEFAULT_TENANT, Entry
from light_scheduler.wire.plain import HISTORY_KEY, IDENTITY, fired_lines
from light_scheduler.wire.state import SCHEDULE_KIND

from .messages import PlainMessages

_STATE_KEY = SCHEDULE_KIND + IDENTITY


class PlainFirings:
    """Executes plain firings of the default tenant as part of a transaction, if no special rules apply to it.

    `done` is the number of executed firings.
    """

    def __init__(self, transaction: Transaction, messages: PlainMessages) -> None:
        context = transaction.context
        self.done = 0
        self._dues = transaction.firings[DEFAULT_TENANT]
        self._add = transaction.batches.add
        self._add_message = messages.add
        self._now = transaction.now
        self._rules = context.rules
        self._changelog = context.changelog
        self._history = context.own_place(context.names.history)
        self._line = fired_lines(transaction.now, context.partition)
        schedules = transaction.overlay.whole_of(DEFAULT_TENANT)
        self._row_of, self._remove, self._key_start = schedules.row_of, schedules.remove, schedules.key_start

    def fire(self, entry: Entry) -> bool:
        """Deliver the message of a waking schedule, if that is all there is to do. Return whether it was delivered."""
        schedule, progress = entry.schedule, entry.progress
        if schedule.tenant != DEFAULT_TENANT or not is_plain_turn(schedule, progress, self._now, self._rules):
            return False
        id = schedule.id.encode()
        primary = self._key_start + id
        row = self._row_of(primary)
        if row is None or not self._add_message(entry, id):
            return False
        self._remove(primary, row)
        add = self._add
        add(self._changelog, _STATE_KEY + id, None)
        topic = schedule.target.topic
        line = self._line(schedule.id, schedule.version, progress.due, progress.sequence, progress.attempt, topic)
        add(self._history, HISTORY_KEY + id, line)
        self._dues[progress.due] += 1
        self.done += 1
        return True
