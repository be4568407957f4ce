"""How a cycle executes bulk commands, which select many schedules.

    1. The lane that reads a bulk command copies it to all other partitions. It begins a total, and a part for its own
       partition. A lane that reads a copy begins a part.
    2. From the next cycle on, each part changes a slice of the selected schedules per cycle and stores its position.
       Tenants get equal parts of a slice. If a schedule is about to change or fire first, the part changes it before
       that (`catch_up`).
    3. A finished part reports its count to the partition that the command was sent to.
    4. When all have reported, or after a day (see `bulk.overdue`), the total becomes the answer. It names the
       partitions that have not reported.

While a topic grows, schedules move, so one part per partition could miss some of them and change others twice. So only
the former partitions get the copies of step 1. Each of them begins a sub-total, and copies the command to all
partitions that its schedules may have moved to. A part changes only schedules of one former partition (`bulk.growth`).
If that partition still had a schedule when it read the command, the schedule is changed there before it moves.
Otherwise, it is changed where it is.

Each step is part of a lane's transaction, so nothing is done or counted twice, even if workers are killed in between.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import suppress

import msgspec

from light_scheduler.engine import Limits, concerns, decide_bulk
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.context.overdue_totals import OverdueTotals
from light_scheduler.lanes.failures.condemned_work import NO_FAULT_OF_WORK, Condemned, blaming, enduring
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.quotas.delayed_commands import longest_delay
from light_scheduler.lanes.writes.answers import Answers
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.recording import record_decision
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import BulkCommand, BulkPart, BulkTotal, Entry, EventType
from light_scheduler.model.arrival import offset_of
from light_scheduler.model.bulk import SUB_TOTAL, ScopedPart, SubTotal
from light_scheduler.model.tenant_rules import QUOTA
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import FORWARDED_FROM, Count, Origin, ReachKind
from light_scheduler.wire.state import (
    bulk_part_key,
    encode_bulk_part,
    encode_bulk_total,
    id_in,
    identity,
)

from .growth import Governing
from .parts import BulkParts
from .totals import BulkTotals

replace = msgspec.structs.replace

log = logging.getLogger(__name__)

MOST_AT_WORK = 1_000
"""Maximum number of a tenant's bulk commands that are in progress, or wait for reports, in a partition.

Each cycle reads all of them, and applies all of them to each schedule of the tenant that a command names or that is
due.
"""

_FRAME_BYTES = 128
"""Maximum overhead (bytes) of a value in the changelog.

That is 61 for the header of a batch, 37 for a record's lengths, attributes, time, offset and key, and 18 for counts and
lengths by which the value grows, not counting ids and partitions.
"""
_PARTITION_BYTES = 5
"""Maximum size (bytes) of a partition number in a total."""

TOO_LARGE = "with its labels, key and time rule the command is too large to be kept in the changelog"


class BulkCommands:
    """The bulk commands in progress in a partition, for the length of one cycle."""

    def __init__(
        self, transaction: Transaction, writes: PartitionWrites, answers: Answers, condemned: Condemned
    ) -> None:
        self._governing = Governing(writes.partitioning, transaction.context.partition)
        context = transaction.context
        self._transaction = transaction
        self._writes = writes
        self._answers = answers
        self._condemned = condemned
        self._history = transaction.history
        self._overlay = transaction.overlay
        self._partition = context.partition
        self._limits = context.limits
        self._new_token = context.new_token
        room = context.targets[context.changelog[0]].max_message_bytes
        self._room = room_to_begin(room, context.limits, writes.partitioning.partitions)
        self._before = self._overlay.others.bulk_parts()
        self._at_work = BulkParts(self._before)
        self.offset = -1
        """Arrival of the bulk command that is, or was last, continued, ended or abandoned. -1 before the first."""
        self.has_given_up = False
        """Whether the cycle abandoned a bulk command, instead of continuing any."""
        self._moved: set[int] = set()
        self._totals = BulkTotals(self._overlay)

    @property
    def any_at_work(self) -> bool:
        """Whether a schedule may have to catch up."""
        return bool(self._at_work)

    @property
    def any_awaited(self) -> bool:
        """Whether a total waits for reports here.

        Its command may have been copied before this lane learned that the topic has grown. Other partitions follow
        moved schedules all the same.
        """
        return bool(self._totals)

    def awaits(self, tenant: str) -> bool:
        """Return whether a total of a tenant's command waits here. Only for that tenant does the order matter."""
        return self._totals.any_of(tenant)

    def check_room(self, tenant: str) -> None:
        """Raise InvalidCommand, and count that, if a tenant has as many bulk commands here as allowed."""
        if max(self._at_work.count_of(tenant), self._totals.count_of(tenant)) < MOST_AT_WORK:
            return
        self._transaction.over_quota += 1
        raise InvalidCommand(
            f"{QUOTA}bulk_commands",
            f"{MOST_AT_WORK} bulk commands of tenant {tenant} are at work in this partition, which is the limit: wait "
            "for the answers of earlier ones, then send it again",
        )

    def begin(
        self, record: CommandRecord, command: BulkCommand, origin: Origin | None, *, are_moving: bool = False
    ) -> None:
        """1. Begin a bulk command, or a copy of one. Raises InvalidCommand.

        `are_moving` says whether schedules are moving between partitions.
        """
        if origin is None:
            self._begin_all(record, command, are_moving=are_moving)
        elif not origin.token:
            raise InvalidCommand(FORWARDED_FROM, "has no token: only workers copy bulk commands")
        elif origin.reach is not None and origin.reach.kind == "part":
            number, former = SUB_TOTAL + origin.offset, origin.partition
            self._begin_part(ScopedPart(command, former, number, token=origin.token, former=former))
        elif self._governing.spreads(origin.reach):
            self._spread(record, command, origin)
        else:
            self._begin_part(BulkPart(command, origin.partition, origin.offset, token=origin.token))

    def _begin_all(self, record: CommandRecord, command: BulkCommand, *, are_moving: bool) -> None:
        token = self._new_token()
        others = [each for each in self._writes.others if not are_moving or self._governing.was_there(each)]
        is_own = not are_moving or self._governing.was_there(self._partition)
        awaited = (self._partition, *others) if is_own else tuple(others)
        kind = SubTotal if are_moving else BulkTotal
        total = kind(command, awaited, token=token, requester=self._history.requester)
        if len(encode_bulk_total(total)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        for partition in others:
            self._writes.waiting.require_room(partition, command.tenant)
        if are_moving and is_own:
            self._spread(record, command, Origin(self._partition, command.offset, command.recorded_at, token))
        elif is_own:
            self._begin_part(BulkPart(command, self._partition, command.offset, token=token))
        self._copy(record, others, token, self._governing.reach(is_tree=are_moving), command.tenant)
        self._totals.put(command.offset, total)

    def _spread(self, record: CommandRecord, command: BulkCommand, parent: Origin) -> None:
        """1. Begin a part here, and one in each partition that schedules may have moved to from here."""
        token, number, homes = self._new_token(), SUB_TOTAL + command.offset, self._governing.homes
        above = parent.partition, parent.offset, parent.token
        total = SubTotal(command, (self._partition, *homes), 0, token, self._history.requester, *above)
        if len(encode_bulk_total(total)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        self._begin_part(ScopedPart(command, self._partition, number, token=token, former=self._partition))
        self._copy(record, homes, token, "part", command.tenant)
        self._totals.put(number, total)

    def _begin_part(self, part: BulkPart) -> None:
        part = replace(part, requester=self._history.requester)
        if len(encode_bulk_part(part)) > self._room:
            raise InvalidCommand("schedule-id", TOO_LARGE)
        self._at_work.put(part)
        self._moved.add(part.command.offset)

    def _copy(
        self, record: CommandRecord, partitions: list[int], token: str, kind: ReachKind | None, tenant: str
    ) -> None:
        try:
            # First the copies that have to wait: one may be too large for that, and then none may be written.
            for partition in sorted(partitions, key=self._writes.waiting.holds, reverse=True):
                if kind is None:
                    self._writes.copy(record, partition, token, tenant)
                else:
                    self._writes.spread(record, partition, token, kind, tenant)
        except RecordTooLargeError as error:
            self._at_work.pop(record.offset)
            raise InvalidCommand("payload", f"is too large to be forwarded to all partitions: {error}") from error

    def report_none(self, origin: Origin) -> None:
        """1. Report that a copy changed nothing because this version cannot read it, in case a total waits for it.

        A worker of another version may have written the copy.
        """
        if origin.token:
            self._writes.report(_nothing_from(self._partition, origin), origin.partition)

    def miss(self, origin: Origin, partition: int) -> None:
        """1. Count a copy made here, which cannot reach its partition, as a report that this one changed nothing."""
        with suppress(InvalidCommand):  # no total waits for it any more
            self.add_count(_nothing_from(partition, origin))

    def catch_up(self, name: bytes, entry: Entry) -> Entry | None:
        """2. Apply the bulk commands in progress to a schedule before it changes or fires. Return the schedule then.

        A condemned bulk command, which ends where it is, is skipped. If a bulk command fails, and not because of the
        worker's state, WorkFailedError blames it, not the command or firing that follows.
        """
        current: Entry | None = entry
        offset = -1
        with blaming(lambda: Work(Kind.BULK, offset)):
            for part in self._at_work.of(entry.schedule.tenant):
                offset = part.command.offset
                if self._condemned and Work(Kind.BULK, offset) in self._condemned:
                    continue
                if current is not None and self._concerns(part, current):
                    current = self._deal_with(offset, name, current)
        return current

    def give_up(self, offset: int, reason: str | None) -> None:
        """End a bulk command that fails, at its current position, and record why.

        Its part is reported as missing. If only its totals wait here, they end with the reports so far. Without a
        `reason`, nothing is recorded, as a transaction that records the failure fails as well.
        """
        self.offset, self.has_given_up = offset, True
        part = self._at_work.pop(offset)
        if part is None:
            self._give_totals_up(offset, reason)
            return
        self._before = [other for other in self._before if other.command.offset != offset]
        self._moved.add(offset)
        self._tell_failed(part, "carry it out", reason)
        count = Count(part.origin_offset, self._partition, part.changed, part.token, (self._partition,))
        self._report_given_up(count, part.origin_partition, reason)

    def _give_totals_up(self, offset: int, reason: str | None) -> None:
        for number in (offset, SUB_TOTAL + offset):
            total = self._totals.get(number)
            if total is not None and self._partition not in total.awaited:
                self._tell_failed(total, "answer it", reason)
                self._finish_given_up(number, total, reason)

    def _finish_given_up(self, number: int, total: BulkTotal, reason: str | None) -> None:
        """Report a total to the one above it, or answer. Errors are only logged."""
        self._totals.drop(number, total)
        if isinstance(total, SubTotal) and total.parent_token:
            self._report_given_up(_count_of(total, self._partition), total.parent_partition, reason)
        elif reason is not None:
            self._answer_given_up(total)

    def _report_given_up(self, count: Count, to: int, reason: str | None) -> None:
        """Report an abandoned part or sub-total. A total elsewhere that cannot be reached ends by its age."""
        if to != self._partition:
            with enduring(f"the bulk command at offset {offset_of(self.offset)} cannot be reported to partition {to}"):
                self._writes.report(count, to)
            return
        number, total = self._totals.add(count)
        if not total.awaited:
            self._finish_given_up(number, total, reason)

    def _answer_given_up(self, total: BulkTotal) -> None:
        offset = offset_of(total.command.offset)
        try:
            self._answers.add_bulk(total)
        except NO_FAULT_OF_WORK:
            raise
        except Exception:
            log.exception("the end of the bulk command at offset %d cannot be recorded", offset)
            with enduring(f"the bulk command at offset {offset} cannot be answered"):
                self._answers.add_unrecorded(total)

    def _tell_failed(self, given_up: BulkPart | BulkTotal, what: str, reason: str | None) -> None:
        """Record that the scheduler fails to execute or answer a bulk command. Does nothing without a `reason`."""
        if reason is None:
            return
        command = given_up.command
        told = f"the scheduler fails to {what}: {reason}; {given_up.changed} schedules were changed before"
        with (
            enduring(f"the failure of the bulk command at offset {offset_of(command.offset)} cannot be recorded"),
            self._history.asked_for_by(given_up.requester),
        ):
            self._history.record_command(EventType.REJECTED, command.tenant, command.id, told)

    def advance(self, limit: int, max_bytes: int, turn: int) -> bool:
        """2. Process the next `limit` schedules, or `max_bytes` of payload. Return whether anything was in progress.

        Reads the table as it was before this cycle. That covers every schedule that existed when a bulk command of an
        earlier cycle arrived. Tenants get equal parts, and the commands of a tenant run one after the other. `turn`
        decides which tenant comes first, and changes with each committed cycle. So with a limit of one, a command that
        makes transactions fail is isolated.
        """
        parts: defaultdict[str, list[BulkPart]] = defaultdict(list)
        for part in self._before:
            parts[part.command.tenant].append(part)
        if not parts:
            return False
        share, tenants = max(1, limit // len(parts)), list(parts)
        first = turn % len(parts)
        for tenant in tenants[first:] + tenants[:first]:
            if limit <= 0:
                break
            limit -= self._advance(parts[tenant], share, max_bytes // len(parts))
        return True

    def _advance(self, parts: list[BulkPart], limit: int, max_bytes: int) -> int:
        """Process the next schedules of a tenant. Return how many."""
        dealt = 0
        for part in parts:
            self.offset = offset = part.command.offset
            tenant, after = part.command.tenant, part.after
            for name in self._overlay.stored(identity(tenant, part.selection.id_prefix), identity(tenant, after)):
                if dealt >= limit or max_bytes < 0:
                    self._at_work.put(replace(self._at_work[offset], after=after))
                    self._moved.add(offset)
                    return dealt
                dealt += 1
                after = id_in(name)
                entry = self._overlay.get(name)
                if entry is not None:
                    max_bytes -= len(entry.schedule.payload or b"")
                    if self._concerns(part, entry):
                        self._deal_with(offset, name, entry)
            self._end(offset)
            dealt += 1  # with a limit of one, the next command is not blamed for the end of this one
            if dealt >= limit:
                break
        return dealt

    def add_count(self, count: Count) -> None:
        """3. Add the count of another partition. Raises InvalidCommand if no total waits for the report."""
        number, total = self._totals.add(count)
        if not total.awaited:
            self._finish(number, total)

    def end_overdue(self, overdue_totals: OverdueTotals) -> bool:
        """4. Answer totals that have waited too long, with the reports so far. Return whether there were any."""
        transaction = self._transaction
        tenants, share = transaction.tenants, transaction.context.rate_part.share
        overdue = overdue_totals.overdue(
            self._totals.before, transaction.now, lambda tenant: longest_delay(tenants.get(tenant), share)
        )
        for number in overdue:
            total = self._totals.get(number)
            if total is not None and self._partition not in total.awaited:  # the part here goes on
                self.offset = total.command.offset
                transaction.unreported.append(total)
                self._finish(number, total)
        return bool(transaction.unreported)

    def _finish(self, number: int, total: BulkTotal) -> None:
        """3. or 4. Report a total to the one above it, or answer."""
        self._totals.drop(number, total)
        if isinstance(total, SubTotal) and total.parent_token:
            self._report(_count_of(total, self._partition), total.parent_partition)  # 3.
        else:
            self._answers.add_bulk(total)  # 4.

    def keep(self) -> None:
        """Store the changed parts and totals. Nothing may change after that."""
        records: dict[bytes, bytes | None] = {}
        for offset in self._moved:
            part = self._at_work.get(offset)
            records[bulk_part_key(offset)] = None if part is None else encode_bulk_part(part)
        for key, record in (records | self._totals.records()).items():
            self._transaction.store_record(key, record)

    def _deal_with(self, offset: int, name: bytes, entry: Entry) -> Entry | None:
        part = self._at_work[offset]
        decision = decide_bulk(part.command, entry, self._transaction.now, self._limits)
        try:
            with self._history.asked_for_by(part.requester):  # another command may be running
                record_decision(self._transaction, name, entry, decision)
        except InvalidCommand:  # with its new rule it is too large to store, so it stays as it is
            return entry
        if decision.event is not None:
            self._at_work.put(replace(part, changed=part.changed + 1))
            self._moved.add(offset)
        return decision.entry

    def _end(self, offset: int) -> None:
        part = self._at_work.pop(offset)
        assert part is not None, "it has just been carried on"
        self._moved.add(offset)
        count = Count(part.origin_offset, self._partition, part.changed, part.token)
        self._report(count, part.origin_partition)

    def _report(self, count: Count, to: int) -> None:
        if to == self._partition:
            self.add_count(count)
        else:
            self._writes.report(count, to)

    def _concerns(self, part: BulkPart, entry: Entry) -> bool:
        if not concerns(part, entry):
            return False
        return not isinstance(part, ScopedPart) or self._governing.of(entry) == part.former


def _nothing_from(partition: int, origin: Origin) -> Count:
    """Return the report of a partition that has not executed a copy."""
    is_part = origin.reach is not None and origin.reach.kind == "part"
    number = SUB_TOTAL + origin.offset if is_part else origin.offset
    return Count(number, partition, 0, origin.token, missing=(partition,))


def room_to_begin(limit: int, limits: Limits, partitions: int) -> int:
    """Return the maximum size (bytes) of a bulk command's state records when it begins, for a batch `limit`.

    The records grow later: a part notes the last processed id, and a total the partitions that skip the command.
    """
    return limit - _FRAME_BYTES - limits.max_id_bytes - partitions * _PARTITION_BYTES


def _count_of(total: SubTotal, partition: int) -> Count:
    """Return the report of a partition's sub-total to the total above it."""
    return Count(total.parent_offset, partition, total.changed, total.parent_token, total.without)
