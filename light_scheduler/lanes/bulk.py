"""Bulk commands: those for many schedules, as a cycle carries them out.

    1. The lane that a bulk command arrives at copies it to all other partitions, begins a total, and the part of
       its own partition. A lane that receives a copy begins a part.
    2. From the next cycle on, each deals with a slice of the selected schedules, and keeps how far it has come. What
       happens to a schedule in the meantime happens after the command: the schedule is dealt with first (`catch_up`).
    3. A part that is done reports its count to the partition that the command was sent to.
    4. When all have reported, the total is the answer; or after a day without a report (see `awaited`). The answer
       names the partitions that are not known to have carried the command out.

While a topic grows, schedules move, so that a part for each partition could miss some and meet others twice. Then only
the partitions that there were before get copies of 1. Each of them copies the command to all partitions that its
schedules may move to, behind the last one that it has handed over before, and has a total for itself and these. A part
deals with schedules of one former partition only (`Governing`): those that it still had when it read the command are
dealt with there, before they move; those that it had handed over by then, where they are.

Each step is part of a lane's transaction: nothing is done or counted twice, whatever is killed in between.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import msgspec

from light_scheduler.engine import concerns, decide_bulk
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.model import BulkCommand, BulkPart, BulkTotal, Entry, EventType
from light_scheduler.model.bulk import SUB_TOTAL, ScopedPart, SubTotal, lacking
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM, Count, Origin, ReachKind
from light_scheduler.wire.state import (
    bulk_part_key,
    bulk_total_key,
    encode_bulk_part,
    encode_bulk_total,
    id_in,
    identity,
)

from .answers import Answers
from .awaited import Awaited
from .condemned import NO_FAULT_OF_WORK
from .delayed_commands import longest_delay
from .forwarding import Forwarding
from .governing import Governing
from .recording import record_decision
from .transaction import Transaction

replace = msgspec.structs.replace
log = logging.getLogger(__name__)

TOO_LARGE = "with its labels, key and time rule the command is too large to be kept in the changelog"


class BulkCommands:
    """The bulk commands that are at work in a partition, for the length of one cycle."""

    def __init__(self, transaction: Transaction, forwarding: Forwarding, answers: Answers) -> None:
        self._governing = Governing(forwarding.partitioning, transaction.context.partition)
        context = transaction.context
        self._transaction = transaction
        self._forwarding = forwarding
        self._answers = answers
        self._history = transaction.history
        self._overlay = transaction.overlay
        self._partition = context.partition
        self._limits = context.limits
        self._new_token = context.new_token
        room = context.targets[context.changelog[0]].max_message_bytes
        self._room = room - context.limits.max_id_bytes  # a part is to note the last id that was dealt with
        self._before = self._overlay.bulk_parts()
        self._at_work = {part.command.offset: part for part in self._before}
        self.offset = -1
        """That of the bulk command that `advance` or `end_overdue` is at, or was at last; -1: of none yet."""
        self.dealing_with = -1
        """The offset of the one that is carried out on a schedule, or was last."""
        self._moved: set[int] = set()
        self._totals: dict[int, BulkTotal | None] = {}
        self._awaited: Counter[str] | None = None  # how many totals wait here, by tenant, once that was asked for

    @property
    def any_at_work(self) -> bool:
        """Whether a schedule may have to catch up."""
        return bool(self._at_work)

    @property
    def any_before(self) -> bool:
        """Whether any were at work before this cycle: `advance` carries those on."""
        return bool(self._before)

    @property
    def any_awaited(self) -> bool:
        """Whether a total waits for reports here.

        It may be that of a command that was copied before this lane heard of the growth: others follow schedules all
        the same.
        """
        return self._waiting.total() > 0

    def awaits(self, tenant: str) -> bool:
        """Tell whether a total of a tenant's command waits here: only for its schedules does the order matter."""
        return self._waiting[tenant] > 0

    @property
    def _waiting(self) -> Counter[str]:
        if self._awaited is None:
            totals = {**self._totals_before, **self._totals} if self._totals else self._totals_before
            self._awaited = Counter(total.command.tenant for total in totals.values() if total is not None)
        return self._awaited

    def _total(self, number: int) -> BulkTotal | None:
        return self._totals[number] if number in self._totals else self._totals_before.get(number)

    def _put(self, number: int, total: BulkTotal) -> None:
        """Keep a total, which may be new."""
        if self._awaited is not None and self._total(number) is None:
            self._awaited[total.command.tenant] += 1
        self._totals[number] = total

    def _drop(self, number: int, total: BulkTotal) -> None:
        """Keep a total no longer."""
        if self._awaited is not None:
            self._awaited[total.command.tenant] -= 1
        self._totals[number] = None

    @cached_property
    def _totals_before(self) -> Mapping[int, BulkTotal]:
        return self._overlay.bulk_totals()

    def begin(
        self, record: CommandRecord, command: BulkCommand, origin: Origin | None, *, are_moving: bool = False
    ) -> None:
        """1. Take a bulk command, or a copy of one, while schedules `are_moving` or not. Raises InvalidCommand."""
        if origin is None:
            self._begin_all(record, command, are_moving=are_moving)
        elif not origin.token:
            raise InvalidCommand(FORWARDED_FROM, "is not that of a bulk command: no worker has written it")
        elif origin.reach is not None and origin.reach.kind == "part":
            number, former = SUB_TOTAL + origin.offset, origin.partition
            self._begin_part(ScopedPart(command, former, number, token=origin.token, former=former))
        elif self._governing.spreads(origin.reach):
            self._spread(record, command, origin)
        else:
            self._begin_part(BulkPart(command, origin.partition, origin.offset, token=origin.token))

    def _begin_all(self, record: CommandRecord, command: BulkCommand, *, are_moving: bool) -> None:
        token = self._new_token()
        others = [each for each in self._forwarding.others if not are_moving or self._governing.was_there(each)]
        is_own = not are_moving or self._governing.was_there(self._partition)
        awaited = (self._partition, *others) if is_own else tuple(others)
        kind = SubTotal if are_moving else BulkTotal
        total = kind(command, awaited, token=token, requester=self._history.requester)
        if len(encode_bulk_total(total)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        if are_moving and is_own:
            self._spread(record, command, Origin(self._partition, command.offset, command.recorded_at, token))
        elif is_own:
            self._begin_part(BulkPart(command, self._partition, command.offset, token=token))
        self._copy(record, others, token, self._governing.reach(is_tree=are_moving))
        self._put(command.offset, total)

    def _spread(self, record: CommandRecord, command: BulkCommand, parent: Origin) -> None:
        """1. Begin a part here, and others wherever schedules of this partition may be by now."""
        token, number, homes = self._new_token(), SUB_TOTAL + command.offset, self._governing.homes
        above = parent.partition, parent.offset, parent.token
        total = SubTotal(command, (self._partition, *homes), 0, token, self._history.requester, *above)
        if len(encode_bulk_total(total)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        self._begin_part(ScopedPart(command, self._partition, number, token=token, former=self._partition))
        self._copy(record, homes, token, "part")
        self._put(number, total)

    def _begin_part(self, part: BulkPart) -> None:
        part = replace(part, requester=self._history.requester)
        if len(encode_bulk_part(part)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        self._at_work[part.command.offset] = part
        self._moved.add(part.command.offset)

    def _copy(self, record: CommandRecord, partitions: list[int], token: str, kind: ReachKind | None) -> None:
        try:
            for partition in partitions:
                if kind is None:
                    self._forwarding.copy(record, partition, token)
                else:
                    self._forwarding.spread(record, partition, token, kind)
        except RecordTooLargeError as error:
            self._at_work.pop(record.offset, None)
            raise InvalidCommand("payload", f"is too large to be forwarded to all partitions: {error}") from error

    def report_none(self, origin: Origin) -> None:
        """1. Report nothing of a copy that is not understood here, in case a total waits for it.

        So it would be of one that a worker of another version has made.
        """
        if origin.token:
            is_part = origin.reach is not None and origin.reach.kind == "part"
            number = SUB_TOTAL + origin.offset if is_part else origin.offset
            count = Count(number, self._partition, 0, origin.token, missing=(self._partition,))
            self._forwarding.report(count, origin.partition)

    def catch_up(self, name: bytes, entry: Entry) -> Entry | None:
        """2. Deal with a schedule before something else happens to it; return how it stands then."""
        current: Entry | None = entry
        for offset, part in list(self._at_work.items()):
            if current is not None and self._concerns(part, current):
                current = self._deal_with(offset, name, current)
        return current

    def give_up(self, offset: int, reason: str) -> None:
        """End a bulk command that cannot be carried out where it stands, and record why, if it is at work.

        If only its totals wait here, those end without an answer; one that reports to a total above it, with a report.
        """
        part = self._at_work.get(offset)
        if part is None:
            self._give_totals_up(offset, reason)
            return
        self._before = [other for other in self._before if other.command.offset != offset]
        self._end(offset, missing=(self._partition,))
        reason = f"the scheduler fails to carry it out: {reason}; {part.changed} schedules were changed before"
        with self._history.asked_for_by(part.requester):
            self._history.record_command(EventType.REJECTED, part.command.tenant, part.command.id, reason)

    def _give_totals_up(self, offset: int, reason: str) -> None:
        for number in (offset, SUB_TOTAL + offset):
            total = self._total(number)
            if total is not None and self._partition not in total.awaited:
                self._drop(number, total)
                told = f"the scheduler fails to answer it: {reason}; {total.changed} schedules were changed before"
                with self._history.asked_for_by(total.requester):
                    self._history.record_command(EventType.REJECTED, total.command.tenant, total.command.id, told)
                if isinstance(total, SubTotal) and total.parent_token:
                    self._try_to_report(total)

    def _try_to_report(self, total: SubTotal) -> None:
        """Report a total that is given up. If even that fails, the total above ends by its age."""
        try:
            self._report_total(total)
        except NO_FAULT_OF_WORK:
            raise
        except Exception:
            log.exception("the total of the bulk command at offset %d cannot be reported", total.command.offset)

    def advance(self, limit: int, max_bytes: int) -> bool:
        """2. Deal with the next `limit` schedules, or `max_bytes` of payload; tell whether anything was at work.

        It goes through what the table had before this cycle: that is all there was when a bulk command of an
        earlier cycle arrived.
        """
        for part in self._before:
            self.offset = offset = part.command.offset
            tenant, after = part.command.tenant, part.after
            for name in self._overlay.stored(identity(tenant, part.selection.id_prefix), identity(tenant, after)):
                if limit <= 0 or max_bytes < 0:
                    self._at_work[offset] = replace(self._at_work[offset], after=after)
                    self._moved.add(offset)
                    return True
                limit -= 1
                after = id_in(name)
                entry = self._overlay.get(name)
                if entry is not None:
                    max_bytes -= len(entry.schedule.payload or b"")
                    if self._concerns(part, entry):
                        self._deal_with(offset, name, entry)
            self._end(offset)
        return bool(self._before)

    def add_count(self, count: Count) -> None:
        """3. Add what another partition has counted. Raises InvalidCommand for a report that nobody waits for."""
        number, total = self._awaiting(count)
        awaited = tuple(partition for partition in total.awaited if partition != count.partition)
        total = replace(total, awaited=awaited, changed=total.changed + count.changed)
        if count.missing:
            total = lacking(total, count.missing)
        self._put(number, total)
        if not awaited:
            self._finish(number, total)

    def end_overdue(self, awaited: Awaited) -> bool:
        """4. Answer what has waited for reports for too long, with what was reported; tell whether there was any."""
        transaction = self._transaction
        tenants, share = transaction.tenants, transaction.context.rate_part.share
        overdue = awaited.overdue(
            self._totals_before, transaction.now, lambda tenant: longest_delay(tenants.get(tenant), share)
        )
        for number in overdue:
            total = self._total(number)
            if total is not None and self._partition not in total.awaited:  # the part here goes on
                self.offset = total.command.offset
                transaction.unreported.append(total)
                self._finish(number, total)
        return bool(transaction.unreported)

    def _finish(self, number: int, total: BulkTotal) -> None:
        """3. or 4. Report a total to the one above it, or answer."""
        self._drop(number, total)
        if isinstance(total, SubTotal) and total.parent_token:
            self._report_total(total)  # 3.
        else:
            self._answers.add_bulk(total)  # 4.

    def _report_total(self, total: SubTotal) -> None:
        count = Count(total.parent_offset, self._partition, total.changed, total.parent_token, total.without)
        self._report(count, total.parent_partition)

    def _awaiting(self, count: Count) -> tuple[int, BulkTotal]:
        """Return the total that waits for a report, and its number. Raises InvalidCommand if none does."""
        for number in (count.offset, SUB_TOTAL + count.offset):  # an older worker refuses a part by its offset alone
            total = self._totals[number] if number in self._totals else self._overlay.bulk_total(number)
            if total is not None and count.partition in total.awaited and count.token == total.token:
                return number, total
        reason = "is not expected: no bulk command waits for this report. Only workers may set this header"
        raise InvalidCommand(BULK_COUNT, reason)

    def keep(self) -> None:
        """Store what has moved; nothing moves after that."""
        records: dict[bytes, bytes | None] = {}
        for offset in self._moved:
            part = self._at_work.get(offset)
            records[bulk_part_key(offset)] = None if part is None else encode_bulk_part(part)
        for offset, total in self._totals.items():
            records[bulk_total_key(offset)] = None if total is None else encode_bulk_total(total)
        for key, record in records.items():
            self._transaction.store_record(key, record)

    def _deal_with(self, offset: int, name: bytes, entry: Entry) -> Entry | None:
        part = self._at_work[offset]
        self.dealing_with = offset
        decision = decide_bulk(part.command, entry, self._transaction.now, self._limits)
        try:
            with self._history.asked_for_by(part.requester):  # it may be another command's turn
                record_decision(self._transaction, name, entry, decision)
        except InvalidCommand:  # with its new rule it is too large to be kept: it stays as it is
            return entry
        if decision.event is not None:
            self._at_work[offset] = replace(part, changed=part.changed + 1)
            self._moved.add(offset)
        return decision.entry

    def _end(self, offset: int, missing: tuple[int, ...] = ()) -> None:
        part = self._at_work.pop(offset)
        self._moved.add(offset)
        count = Count(part.origin_offset, self._partition, part.changed, part.token, missing)
        self._report(count, part.origin_partition)

    def _report(self, count: Count, to: int) -> None:
        if to == self._partition:
            self.add_count(count)
        else:
            self._forwarding.report(count, to)

    def _concerns(self, part: BulkPart, entry: Entry) -> bool:
        if not concerns(part, entry):
            return False
        return not isinstance(part, ScopedPart) or self._governing.of(entry) == part.former
