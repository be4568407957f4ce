"""Executes plain firings of series of any tenant, without the intermediate values of the general path.

As with plain firings of one-shots (`plain.firings`), all others are left for the general path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from light_scheduler.engine import plain_step
from light_scheduler.lanes.writes.transaction import SPLIT_BYTES, Transaction
from light_scheduler.model import Entry
from light_scheduler.tables.whole_schedules import WholeSchedules
from light_scheduler.wire import history_key
from light_scheduler.wire.plain import fired_lines
from light_scheduler.wire.state import SCHEDULE_KIND, encode_entry, identity

from .messages import PlainMessages
from .paths import may_be_short

_Tenant = tuple[WholeSchedules, Callable[[str, int, int, int, int, str], bytes], bytes, bytes, Counter[int]]
"""A tenant's schedules, the function that formats history events, the prefixes of state and history keys, and the count
of firings. A plain tuple, as it is unpacked for each firing.
"""


class PlainSeries:
    """Executes plain firings of series as part of a transaction. `done` is the number of executed firings."""

    def __init__(self, transaction: Transaction, messages: PlainMessages) -> None:
        context = transaction.context
        self.done = 0
        self._transaction = transaction
        self._add = transaction.batches.add
        self._add_message = messages.add
        self._now = transaction.now
        self._rules = context.rules
        self._changelog = context.changelog
        self._history = context.own_place(context.names.history)
        self._tenants: dict[str, _Tenant | None] = {}

    def fire(self, entry: Entry) -> Entry | None:
        """Deliver the message of a waking series, if that is all there is to do. Return the series afterwards.

        Return None if nothing was done.
        """
        schedule, progress = entry.schedule, entry.progress
        following = plain_step(schedule, progress, self._now, self._rules)
        if following is None or len(schedule.payload or b"") > SPLIT_BYTES:
            return None
        try:
            tenant = self._tenants[schedule.tenant]
        except KeyError:
            tenant = self._tenants[schedule.tenant] = self._tenant(schedule.tenant)
        if tenant is None:
            return None
        schedules, line, state_key, history_start, dues = tenant
        id, stands = schedule.id.encode(), Entry(schedule, following)
        record = encode_entry(stands)
        if len(record) > SPLIT_BYTES:
            return None
        primary = schedules.key_start + id
        row = schedules.row_of(primary)
        if row is None or not self._add_message(entry, id):
            return None
        self._add(self._changelog, state_key + id, record)
        schedules.move(primary, row, following.due, record)
        topic = schedule.target.topic
        event = line(schedule.id, schedule.version, progress.due, progress.sequence, progress.attempt, topic)
        self._add(self._history, history_start + id, event)
        dues[progress.due] += 1
        self.done += 1
        return stands

    def _tenant(self, name: str) -> _Tenant | None:
        """Return the context of a tenant, or None if its schedules need the general path."""
        transaction = self._transaction
        if not may_be_short(transaction, name):
            return None
        return (
            transaction.overlay.whole_of(name),
            fired_lines(transaction.now, transaction.context.partition, name),
            SCHEDULE_KIND + identity(name, ""),
            history_key(name, None),
            transaction.firings[name],
        )
