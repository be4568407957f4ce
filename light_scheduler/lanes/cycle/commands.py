"""Executes command records: from a record to a decision, or to another partition."""

from __future__ import annotations

import logging
from functools import partial

from light_scheduler.engine import FairQueue, check_bulk, check_tenant, decide, distributed, with_default_target
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.failures.condemned_work import NO_FAULT_OF_WORK, Condemned, blaming, enduring
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.plain.commands import PlainCommands
from light_scheduler.lanes.plain.tasks import PlainTasks
from light_scheduler.lanes.quotas.admission import Admission
from light_scheduler.lanes.writes.answers import Answers
from light_scheduler.lanes.writes.recording import record_decision
from light_scheduler.lanes.writes.rejection import reject, reject_silently
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import BulkCommand, Command, Entry, ScheduleCommand
from light_scheduler.model.adoption import Adoption, Emptied
from light_scheduler.model.arrival import offset_of
from light_scheduler.wire import CommandRecord, with_key_of
from light_scheduler.wire.build import TargetMissing
from light_scheduler.wire.lane_marks import Count, Loan, Origin, as_sent, mark_of
from light_scheduler.wire.requester import requester_of
from light_scheduler.wire.state import identity

from .probing import Probing
from .routing import CommandRouting

WHILE_MOVING = (
    "selects many schedules. Some are moving to added partitions, and a worker of an earlier version would miss those: "
    "send the command again when all workers run this version, or when `light-scheduler topics grow` reports that all "
    "have moved"
)

log = logging.getLogger(__name__)


class Commands:
    """Executes commands as part of a transaction."""

    def __init__(
        self,
        transaction: Transaction,
        routing: CommandRouting,
        admission: Admission,
        answers: Answers,
        bulk: BulkCommands,
        condemned: Condemned,
    ) -> None:
        context = transaction.context
        self._transaction = transaction
        self._routing = routing
        self._writes, self._moving = routing.writes, routing.moving
        self._admission = admission
        self._quotas, self._lending, self._delaying = admission.quotas, admission.room_lending, admission.delaying
        self._answers = answers
        self._bulk = bulk
        self._condemned = condemned
        self._dialect = context.dialect
        self._partition = context.partition
        self._limits = context.limits
        self._turns = context.shared.turns
        self._now = transaction.now
        self._overlay = transaction.overlay
        self._tenants = transaction.tenants
        self._may_delay = bool(self._tenants or self._delaying.tenants)
        self._most_delayed = self._most_delayed_bytes = 0
        self._probing = Probing(transaction)
        self._plain: PlainCommands | PlainTasks
        if context.dialect.has_tasks:
            self._plain = PlainTasks(transaction, self._delaying)
        else:
            self._plain = PlainCommands(transaction, self._writes, self._delaying)
        self._forwards = context.dialect.forwards
        self._decode = context.dialect.decode
        self._history = transaction.history
        self._secret = context.secret

    def take_all(self, records: list[CommandRecord], limit: int = 0, max_bytes: int = 0) -> None:
        """Execute command records from the end of the list, and empty it.

        Each record is freed while it is in the processor's cache. At most `limit` delayed commands of a backlog, or
        `max_bytes` of them, are executed in between. Raises WorkFailedError for a command that fails, unless the
        worker's state is the cause.
        """
        self._most_delayed, self._most_delayed_bytes = limit, max_bytes
        runs = self._plain.is_possible and not self._moving.is_active and not self._condemned
        with blaming(lambda: Work(Kind.COMMAND, records[-1].offset)):
            while records:
                if runs:
                    self._plain.take_run(records)
                    if not records:
                        return
                record = records[-1]
                reason = self._condemned.meet(Work(Kind.COMMAND, record.offset)) if self._condemned else None
                if reason is None:
                    self.take(record)
                else:
                    self.refuse(record, reason)
                records.pop()

    def take_delayed(self, limit: int, max_bytes: int, fair: FairQueue, *, catches_up: bool = False) -> list[Work]:
        """Execute at most `limit` delayed commands, or `max_bytes` of them, as far as rates allow. Return them.

        If the lane `catches_up`, commands whose turn came earlier are executed too. Commands that have to wait again
        are also returned. Raises WorkFailedError as `take_all` does.
        """
        delaying = self._delaying
        works: list[Work] = []

        def serve(tenant: str, most: float) -> float:
            done = 0
            while done < most and delaying.taken_bytes <= max_bytes:
                if (record := delaying.first(tenant, catches_up=catches_up)) is None:
                    break
                works.append(self._take_waiting(record))
                done += 1
                if not delaying.drop_first(tenant):
                    break
            return done

        fair.share({tenant: partial(serve, tenant) for tenant in delaying.tenants}, limit)
        return works

    def _take_waiting(self, record: CommandRecord) -> Work:
        work = Work(Kind.COMMAND, record.offset)
        with blaming(lambda: work):
            reason = self._condemned.meet(work) if self._condemned else None
            if (origin := self._routing.lost_origin(record)) is not None:
                if origin.token:
                    with enduring(f"partition {origin.partition} cannot be told that a bulk command changes nothing"):
                        self._bulk.report_none(origin)
                    return work
                record = as_sent(record, origin)
                if origin.asks or origin.partition == self._partition:
                    with enduring(f"partition {origin.partition} cannot be told that a command does not come back"):
                        self._moving.release(record, origin)
            if reason is None:
                self.take(record, has_waited=True)
            else:
                self.refuse(record, reason)
        return work

    def take(self, record: CommandRecord, *, has_waited: bool = False) -> None:
        """Execute one command record, or delay it, unless it `has_waited`."""
        read = record
        origin: Origin | None = None
        command: Command | None = None
        try:
            if not record.value and self._probing.take(record):
                return
            mark = mark_of(record) if self._forwards else None
            if isinstance(mark, Count):
                self._bulk.add_count(mark)
                return
            if isinstance(mark, Adoption):
                self._moving.adopt(record)
                return
            if isinstance(mark, Emptied):
                self._moving.note_emptied(record, mark)
                return
            if isinstance(mark, Loan):
                self._admission.lend(record, mark)
                return
            if mark is not None:
                self._writes.require_passed_on(record, mark)
                origin, record = mark, as_sent(record, mark)
                if origin.is_elsewhere:
                    self._moving.returned_for_nothing(record, origin)
                    return
            self._history.requester = requester_of(record, self._secret())
            command = self._decoded(record)
            if self._may_delay and not has_waited and self._delays(read, record, command, origin):
                return
            if origin is not None:
                self._moving.returned(identity(command.tenant, command.id), origin)
            if self._tenants and (tenant := self._tenants.get(command.tenant)) is not None:
                check_tenant(command, tenant)
                command = distributed(command, tenant, self._turns.key)
            if isinstance(command, BulkCommand) and command.selection is not None:
                self._begin(record, command, origin)
            else:
                self._carry_out(record, command, origin, None if has_waited else read)
        except InvalidCommand as error:
            if origin is not None and origin.asks:
                self._send_back(record, origin, error)
                return
            if command is None and origin is not None:
                self._moving.returned_for_nothing(record, origin)
            self._reject(record, command, origin, error)
        finally:
            self._history.requester = None

    def _send_back(self, record: CommandRecord, origin: Origin, error: InvalidCommand) -> None:
        """Have the requester reject a command. If the command is too large for that, reject it here."""
        try:
            self._moving.send_back(record, origin)
        except RecordTooLargeError:
            reject(self._transaction, self._answers, record, origin, error)
            self._moving.release(record, origin)

    def reject(self, record: CommandRecord, error: InvalidCommand) -> None:
        """Reject a command that was sent to this partition."""
        self._reject(record, None, None, error)

    def _reject(
        self, record: CommandRecord, command: Command | None, origin: Origin | None, error: InvalidCommand
    ) -> None:
        """Reject a command. The error names its fields as the dialect of the sender does."""
        if command is not None:
            error = InvalidCommand(self._dialect.field_name(record, error.field), error.reason)
        reject(self._transaction, self._answers, record, origin, error)
        if origin is not None:
            self._bulk.report_none(origin)

    def _delays(self, read: CommandRecord, record: CommandRecord, command: Command, origin: Origin | None) -> bool:
        """Delay a command, as it was `read`, if it has to wait. Return whether it is delayed. Raises InvalidCommand.

        A command that another partition asks about is rejected here if it must wait and there is no room: elsewhere, it
        would overtake those that wait. Earlier delayed commands may be executed first.
        """
        delaying = self._delaying
        while delaying.taken < self._most_delayed and delaying.taken_bytes <= self._most_delayed_bytes:
            if (waiting := delaying.first_before(command)) is None:
                break
            with self._history.asked_for_by(None):
                self._take_waiting(waiting)
            if not delaying.drop_first(command.tenant):
                break
        try:
            return delaying.takes(read, command, origin)
        except InvalidCommand as error:
            if origin is not None and origin.asks:
                self._reject(record, command, origin, error)
                self._moving.release(record, origin)
                return True
            if origin is not None:
                self._moving.returned(identity(command.tenant, command.id), origin)
            raise

    def _decoded(self, record: CommandRecord) -> Command:
        """Decode a command. Raises InvalidCommand."""
        try:
            return self._decode(record)
        except TargetMissing as error:
            command = with_default_target(error.command, self._tenants.get(error.command.tenant))
            if command is None:
                raise
            return command

    def _begin(self, record: CommandRecord, command: BulkCommand, origin: Origin | None) -> None:
        if not self._forwards:
            reason = "selects many schedules: send it to a topic of the dialect native or json"
            raise InvalidCommand("schedule-id", reason)
        are_moving = self._moving.may_move
        if origin is None:
            check_bulk(command, self._now, self._limits)
            if are_moving and not self._moving.partitioning.all_follow:
                raise InvalidCommand("schedule-id", WHILE_MOVING)
            self._bulk.check_room(command.tenant)
            if self._tenants and (tenant := self._tenants.get(command.tenant)) is not None:
                self._quotas.take(command, tenant)
        self._bulk.begin(record, command, origin, are_moving=are_moving)

    def _carry_out(
        self, record: CommandRecord, command: Command, origin: Origin | None, read: CommandRecord | None
    ) -> None:
        """Execute a command. If it has to wait for room and does not wait already, store the record that was `read`."""
        name = identity(command.tenant, command.id)
        current: Entry | None = self._overlay.get(name)
        if current is not None and self._bulk.any_at_work:
            current = self._bulk.catch_up(name, current)
        command = with_key_of(record, command)
        if origin is not None and self._moving.pass_on(record, command, name, current, origin):
            return
        try:
            self._carry_out_here(record, command, name, current, origin, read)
        except InvalidCommand as error:
            if origin is None or not origin.asks:
                raise
            self._reject(record, command, origin, error)  # the requester cannot reject it: the schedule is here
            self._moving.answer_who_asked(record, command, origin)

    def _carry_out_here(
        self,
        record: CommandRecord,
        command: Command,
        name: bytes,
        current: Entry | None,
        origin: Origin | None,
        read: CommandRecord | None,
    ) -> None:
        decision = None
        if isinstance(command, ScheduleCommand):  # rejected on arrival; others, where they would be executed
            decision = decide(command, current, self._now, self._limits)
        if origin is None and self._routing.pass_on(record, command, name, current):
            return
        decision = decision or decide(command, current, self._now, self._limits)
        if current is None and decision.entry is not None:
            self._limits.check_room(self._overlay.pending)
        limited = None
        if self._tenants and (tenant := self._tenants.get(command.tenant)) is not None:
            if current is None and decision.entry is not None and tenant.rules.max_pending is not None:
                limited = tenant
                if self._admission.waits_for_room(tenant, command, origin):
                    self._delaying.wait_for_room(read, tenant.name)
                    return
            if origin is not None and origin.asks and read is not None and self._delaying.takes_asked(read, command):
                return
            self._quotas.take(command, tenant)
            if limited is not None:
                self._quotas.check_room(limited)
        record_decision(self._transaction, name, current, decision)
        if self._tenants and decision.entry is not None and isinstance(command, ScheduleCommand):
            self._turns.accept(command.tenant, decision.entry.schedule.target)
        if limited is not None:
            self._lending.ask_ahead(limited)
        self._transaction.outcomes[decision.outcome] += 1
        if origin is not None:
            self._moving.answer_who_asked(record, command, origin)
        self._answers.add_decision(record, command, decision)

    def refuse(self, record: CommandRecord, reason: str) -> None:
        """Reject a command that cannot be executed. If even that fails, its bytes are still in the commands topic."""
        error = InvalidCommand("record", f"the scheduler fails to carry it out: {reason}")
        try:
            if (origin := self._routing.origin_of(record)) is not None:
                record = as_sent(record, origin)
                if origin.asks:
                    self._send_back(record, origin, error)
                    return
            if origin is not None:  # first, so that no requester waits forever
                self._moving.returned_for_nothing(record, origin)
                self._bulk.report_none(origin)
            reject_silently(self._transaction, record, error)
        except NO_FAULT_OF_WORK:
            raise
        except Exception:
            log.exception("a command at offset %d can be neither carried out nor rejected", offset_of(record.offset))
