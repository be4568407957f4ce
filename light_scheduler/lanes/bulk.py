"""Bulk commands: those for many schedules, as a cycle carries them out.

    1. The lane that a bulk command arrives at copies it to all other partitions, begins a total, and the part of
       its own partition. A lane that receives a copy begins a part.
    2. From the next cycle on, each deals with a slice of the selected schedules, and keeps how far it has come. What
       happens to a schedule in the meantime happens after the command: the schedule is dealt with first (`catch_up`).
    3. A part that is done reports its count to the partition that the command was sent to.
    4. When all have reported, the total is the answer.

Each step is part of a lane's transaction: nothing is done or counted twice, whatever is killed in between.
"""

from __future__ import annotations

import msgspec

from light_scheduler.engine import concerns, decide_bulk
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.batches import RecordTooLargeError
from light_scheduler.model import BulkCommand, BulkPart, BulkTotal, Entry, EventType
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM, Count, Origin
from light_scheduler.wire.state import (
    bulk_part_key,
    bulk_total_key,
    encode_bulk_part,
    encode_bulk_total,
    id_in,
    identity,
)

from .answers import Answers
from .forwarding import Forwarding
from .settling import settle
from .transaction import Transaction

replace = msgspec.structs.replace

TOO_LARGE = "with its labels, key and time rule the command is too large to be kept in the changelog"


class BulkCommands:
    """The bulk commands that are at work in a partition, for the length of one cycle."""

    def __init__(self, transaction: Transaction, forwarding: Forwarding, answers: Answers) -> None:
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
        """That of the bulk command that `advance` is at, or was at last."""
        self._moved: set[int] = set()
        self._totals: dict[int, BulkTotal | None] = {}

    @property
    def any_at_work(self) -> bool:
        """Whether a schedule may have to catch up."""
        return bool(self._at_work)

    @property
    def any_before(self) -> bool:
        """Whether any were at work before this cycle: `advance` carries those on."""
        return bool(self._before)

    def begin(self, record: CommandRecord, command: BulkCommand, origin: Origin | None) -> None:
        """1. Take a bulk command, or a copy of one. Raises InvalidCommand."""
        requester = self._history.requester
        if origin is None:
            others = self._forwarding.others
            token = self._new_token()
            total = BulkTotal(command, (self._partition, *others), token=token, requester=requester)
            part = BulkPart(command, self._partition, command.offset, token=token, requester=requester)
            if max(len(encode_bulk_total(total)), len(encode_bulk_part(part))) > self._room:
                raise InvalidCommand("schedule-id", TOO_LARGE)
            try:
                for partition in others:
                    self._forwarding.copy(record, partition, token)
            except RecordTooLargeError as error:
                raise InvalidCommand("payload", f"is too large to be passed on to all partitions: {error}") from error
            self._totals[command.offset] = total
        elif origin.token:
            part = BulkPart(command, origin.partition, origin.offset, token=origin.token, requester=requester)
            if len(encode_bulk_part(part)) > self._room:
                raise InvalidCommand("schedule-id", TOO_LARGE)
        else:
            raise InvalidCommand(FORWARDED_FROM, "is not that of a bulk command: no worker has written it")
        self._at_work[command.offset] = part
        self._moved.add(command.offset)

    def report_none(self, origin: Origin) -> None:
        """1. Report nothing of a copy that is not understood here, in case a total waits for it.

        So it would be of one that a worker of another version has made.
        """
        if origin.token:
            self._forwarding.report(Count(origin.offset, self._partition, 0, origin.token), origin.partition)

    def catch_up(self, name: bytes, entry: Entry) -> Entry | None:
        """2. Deal with a schedule before something else happens to it; return how it stands then."""
        current: Entry | None = entry
        for offset, part in list(self._at_work.items()):
            if current is not None and concerns(part, current):
                current = self._deal_with(offset, name, current)
        return current

    def give_up(self, offset: int, reason: str) -> None:
        """End a bulk command that cannot be carried out where it stands, and record why, if it is at work."""
        part = self._at_work.get(offset)
        if part is None:
            return
        self._before = [other for other in self._before if other.command.offset != offset]
        self._end(offset)
        reason = f"the scheduler fails to carry it out: {reason}; {part.changed} schedules were changed before"
        with self._history.asked_for_by(part.requester):
            self._history.record_command(EventType.REJECTED, part.command.tenant, part.command.id, reason)

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
                    if concerns(part, entry):
                        self._deal_with(offset, name, entry)
            self._end(offset)
        return bool(self._before)

    def add_count(self, count: Count) -> None:
        """3. Add what another partition has counted. Raises InvalidCommand for a report that nobody waits for."""
        total = self._totals[count.offset] if count.offset in self._totals else self._overlay.bulk_total(count.offset)
        if total is None or count.partition not in total.awaited or count.token != total.token:
            reason = "is not expected: no bulk command waits for this report. Only workers may set this header"
            raise InvalidCommand(BULK_COUNT, reason)
        awaited = tuple(partition for partition in total.awaited if partition != count.partition)
        total = replace(total, awaited=awaited, changed=total.changed + count.changed)
        self._totals[count.offset] = total if awaited else None
        if not awaited:
            self._answers.add_bulk(total)  # 4.

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
        decision = decide_bulk(part.command, entry, self._transaction.now, self._limits)
        try:
            with self._history.asked_for_by(part.requester):  # it may be another command's turn
                settle(self._transaction, name, entry, decision)
        except InvalidCommand:  # with its new rule it is too large to be kept: it stays as it is
            return entry
        if decision.event is not None:
            self._at_work[offset] = replace(part, changed=part.changed + 1)
            self._moved.add(offset)
        return decision.entry

    def _end(self, offset: int) -> None:
        part = self._at_work.pop(offset)
        self._moved.add(offset)
        count = Count(part.origin_offset, self._partition, part.changed, part.token)
        if part.origin_partition == self._partition:
            self.add_count(count)
        else:
            self._forwarding.report(count, part.origin_partition)
