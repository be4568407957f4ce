"""Executes runs of plain commands, without the intermediate values of the general path.

Nearly all commands of most applications are plain (`engine.plain`). All others, and plain commands whose id is pending
or belongs elsewhere, are left for the general path (`commands`). For plain commands, that has the same result, byte for
byte.
"""

from __future__ import annotations

from light_scheduler.engine import plain_id
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.quotas.delayed_commands import Delaying
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import DEFAULT_TENANT, EventType, Outcome
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.plain import HISTORY_KEY, IDENTITY, new_state, scheduled_lines
from light_scheduler.wire.state import SCHEDULE_KIND

from .paths import may_be_short

_STATE_KEY = SCHEDULE_KIND + IDENTITY


class PlainCommands:
    """Executes plain commands of the default tenant as part of a transaction, if no special rules apply to it."""

    def __init__(self, transaction: Transaction, writes: PartitionWrites, delaying: Delaying) -> None:
        self._transaction = transaction
        self._writes = writes
        self._delaying = delaying

    @property
    def is_possible(self) -> bool:
        """Whether any command may be executed here."""
        if self._transaction.context.limits.max_pending_per_partition:  # checked for each command
            return False
        return may_be_short(self._transaction) and DEFAULT_TENANT not in self._delaying.tenants

    def take_run(self, records: list[CommandRecord]) -> None:
        """Execute the plain commands at the end of a list, the last one first, and remove them from it."""
        context, transaction = self._transaction.context, self._transaction
        now, limits, changelog = transaction.now, context.limits, context.changelog
        history = context.own_place(context.names.history)
        read, home_of = context.dialect.plain, self._writes.home_of
        forwards, here = context.dialect.forwards, context.partition
        schedules = transaction.overlay.whole_of(DEFAULT_TENANT)
        is_new, put = schedules.is_new, schedules.put
        add, line = transaction.batches.add, scheduled_lines(now, context.partition)
        before = len(records)
        while records:
            record = records[-1]
            try:
                plain = read(record)
            except InvalidCommand:
                break
            if plain is None or (id := plain_id(record, plain, limits)) is None:
                break
            key = record.key or b""
            if (forwards and home_of(key) != here) or not is_new(key):
                break
            due, target, _, _ = plain
            state = new_state(record, id, plain, now)
            try:
                add(changelog, _STATE_KEY + key, state)
            except RecordTooLargeError:
                break
            put(key, due, record.offset, target.topic, state)
            add(history, HISTORY_KEY + key, line(id, due, target.topic))
            del records[-1]
        if done := before - len(records):
            transaction.outcomes[Outcome.SCHEDULED] += done
            transaction.history.events[EventType.SCHEDULED] += done
