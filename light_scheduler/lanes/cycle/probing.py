"""Executes probes in a cycle. They are stored and fire like other schedules, but leave no other trace (see `probe`)."""

from __future__ import annotations

from light_scheduler.engine import decide, take_turn
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Entry, EventType, Once, ScheduleCommand, Target
from light_scheduler.model.probe import PROBE_ID, PROBE_IDENTITY, PROBE_TENANT, ProbeMark
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.probe import NO_VALUE, is_of_probe, probe_headers, probe_mark
from light_scheduler.wire.signatures import require_signed_for


class Probing:
    """Executes probes as part of a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._context = transaction.context

    def take(self, record: CommandRecord) -> bool:
        """Take a record if it is of a probe, and return whether it is. Raises InvalidCommand if no worker wrote it."""
        if not is_of_probe(record):
            return False
        mark, secret = probe_mark(record), self._context.secret()
        if secret is None:  # its signature cannot be checked, and this worker has sent none
            return True
        require_signed_for(record, self._context.commands_topic, secret)
        probe = self._context.memory.probe
        if mark.step == "fired":  # readers see it, even if this transaction is aborted
            probe.read(mark.number, self._transaction.now)
        elif (due := probe.due_of(mark.number)) is not None:
            self._store(record, mark.number, due)
            self._transaction.probes.append(mark.number)
        return True

    def fire(self, entry: Entry) -> None:
        """Execute the turn of a waking probe. Its firing goes to this partition."""
        context, transaction = self._context, self._transaction
        turn, secret = take_turn(entry, transaction.now, context.rules), context.secret()
        transaction.remove(PROBE_IDENTITY)
        if turn.event is EventType.FIRED and secret is not None:
            mark = ProbeMark("fired", (entry.schedule.payload or b"").decode())
            place = context.commands_topic, context.partition
            transaction.batches.add(place, None, NO_VALUE, probe_headers(mark, *place, secret))

    def _store(self, record: CommandRecord, number: str, due: int) -> None:
        transaction, context = self._transaction, self._context
        target = Target(context.commands_topic, None, context.partition)
        command = ScheduleCommand(
            PROBE_TENANT,
            PROBE_ID,
            None,
            Once(due),
            target,
            number.encode(),
            [],
            record.partition,
            record.offset,
            record.timestamp,
        )
        current = transaction.overlay.get(PROBE_IDENTITY)
        transaction.store(PROBE_IDENTITY, decide(command, current, transaction.now, NO_LIMITS).entry)
