"""Executes runs of plain tasks of any tenant, without the intermediate values of the general path.

As with plain commands (`plain.commands`), all others, and tasks whose id is pending, are left for the general path.
"""

from __future__ import annotations

from collections.abc import Callable

from light_scheduler.engine import task_due
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.quotas.delayed_commands import Delaying
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import EventType, Outcome
from light_scheduler.tables.whole_schedules import WholeSchedules
from light_scheduler.wire import CommandRecord, history_key
from light_scheduler.wire.plain import new_task_state, scheduled_lines
from light_scheduler.wire.state import SCHEDULE_KIND, identity

from .paths import may_be_short

_Tenant = tuple[WholeSchedules, Callable[[str, int, str], bytes], bytes, bytes]
"""A tenant's schedules, the function that formats history events, and the prefixes of state and history keys. A plain
tuple, as it is unpacked for each command.
"""


class PlainTasks:
    """Executes plain tasks as part of a transaction."""

    def __init__(self, transaction: Transaction, delaying: Delaying) -> None:
        self._transaction = transaction
        self._delaying = delaying
        self._tenants: dict[str, _Tenant | None] = {}

    @property
    def is_possible(self) -> bool:
        """Whether any task may be executed here."""
        context = self._transaction.context
        return context.plain_paths and not context.limits.max_pending_per_partition  # checked for each command

    def take_run(self, records: list[CommandRecord]) -> None:
        """Execute the plain tasks at the end of a list, the last one first, and remove them from it."""
        context, transaction = self._transaction.context, self._transaction
        now, limits, changelog = transaction.now, context.limits, context.changelog
        history = context.own_place(context.names.history)
        read, add, tenants = context.dialect.task, transaction.batches.add, self._tenants
        before = len(records)
        while records:
            record = records[-1]
            task = read(record)
            if task is None or (due := task_due(record, task, now, limits)) is None:
                break
            try:
                tenant = tenants[task.tenant]
            except KeyError:
                tenant = tenants[task.tenant] = self._tenant(task.tenant)
            if tenant is None:
                break
            schedules, line, state_key, history_start = tenant
            id = task.id.encode()
            if not schedules.is_new(id):
                break
            state, topic = new_task_state(record, task, due, now), task.target.topic
            try:
                add(changelog, state_key + id, state)
            except RecordTooLargeError:
                break
            schedules.put(id, due, record.offset, topic, state)
            add(history, history_start + id, line(task.id, due, topic))
            del records[-1]
        if done := before - len(records):
            transaction.outcomes[Outcome.SCHEDULED] += done
            transaction.history.events[EventType.SCHEDULED] += done

    def _tenant(self, name: str) -> _Tenant | None:
        """Return the context of a tenant, or None if its tasks need the general path."""
        transaction = self._transaction
        if not may_be_short(transaction, name) or name in self._delaying.tenants:
            return None
        return (
            transaction.overlay.whole_of(name),
            scheduled_lines(transaction.now, transaction.context.partition, name),
            SCHEDULE_KIND + identity(name, ""),
            history_key(name, None),
        )
