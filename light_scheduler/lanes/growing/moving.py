"""Moves schedules when a commands topic has grown, and forwards commands meanwhile.

With more partitions, a key may belong to another partition than before. The former partition hands its schedule over:
the tombstone in its own changelog and the record by which the new one adopts the schedule are one transaction. Commands
of the key arrive in both, so all of them go through the former partition, whose log decides their order:

    1. The partition that a key belongs to forwards its commands to the former one, as a question (`?`), and counts per
       schedule how many are not back.
    2. The former one never executes a command of a key that belongs elsewhere. If it has the schedule, it moves it now.
       Then it forwards the command (`=`), after the schedule and to the same log.
    3. A command with `=` is executed where it arrives. If that is not the partition that asked, since the schedule has
       another key or is too large to move, the asking partition is told (`.`).
    4. Meanwhile the former one moves all other schedules, slice by slice (`handover`). When none is left, and delayed
       commands have been forwarded, it reports that in the logs of all partitions, after the last schedule (`Emptied`).
    5. From then on the partition that a key belongs to asks no more, except for schedules with commands not yet back.

A lane that does not know yet that the topic has grown asks no partition. It forwards commands that it believes to
belong elsewhere without `=`, and a partition that knows more treats that as a question.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from light_scheduler.engine.another_log import in_another_log, out_of_log
from light_scheduler.errors import InvalidCommand, LaneError
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.quotas.delayed_commands import Delaying
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Command, Entry, EventType
from light_scheduler.model.adoption import Emptied
from light_scheduler.model.tenant_rules import TENANT_DELETED
from light_scheduler.wire import CommandRecord, partition_for
from light_scheduler.wire.build import TargetMissing
from light_scheduler.wire.handover import ADOPTED_FROM, adopted_entry, require_handed_over
from light_scheduler.wire.lane_marks import Origin, naming
from light_scheduler.wire.state import (
    decode_lent,
    emptied_key,
    encode_emptied,
    encode_entry,
    encode_lent,
    identity,
    identity_of,
    lent_key,
)

replace = msgspec.structs.replace


class Moving:
    """Moves schedules and forwards commands. `is_active` while schedules are left to move from or to this partition."""

    def __init__(
        self, transaction: Transaction, writes: PartitionWrites, bulk: BulkCommands, delaying: Delaying
    ) -> None:
        context = transaction.context
        self._transaction = transaction
        self._writes = writes
        self._bulk = bulk
        self._delaying = delaying
        self._overlay = transaction.overlay
        self._dialect = context.dialect
        self._partition = context.partition
        self._queue_ends = context.memory.queue_ends
        self.partitioning = partitioning = writes.partitioning
        self._has_grown = partitioning.former is not None and context.dialect.forwards
        self._has_lent = False
        self.is_active = self._has_grown and context.partition not in partitioning.settled

    def adopt(self, record: CommandRecord) -> None:
        """Take over the schedule of a record. Raises InvalidCommand, FormatTooNew."""
        handed_over = adopted_entry(record, self.partitioning.secret)
        entry = in_another_log(handed_over, self._overlay.log_number, bulk_offset=record.offset)
        name = identity_of(entry)
        key = entry.schedule.key
        if key is not None and self.belongs_elsewhere(key) and not (self.is_active and self.leaves(key)):
            raise LaneError(
                "another partition hands schedules over because the topic has grown, which this one does not know yet"
            )
        if self._overlay.get(name) is not None:
            raise InvalidCommand(ADOPTED_FROM, "moves a schedule to a partition that has one with the same id")
        if entry.schedule.tenant in self._transaction.tenants.deleted:  # the removal may be over here
            self._transaction.history.record(EventType.CANCELLED, name, entry, TENANT_DELETED)
        else:
            self._transaction.store(name, entry)
        self._transaction.adopted += 1

    def note_emptied(self, record: CommandRecord, emptied: Emptied) -> None:
        """4. Store that a partition has nothing left to hand over. Raises InvalidCommand."""
        require_handed_over(record, self.partitioning.secret)
        self._transaction.store_record(emptied_key(emptied.partitions, emptied.partition), encode_emptied())

    def returned(self, name: bytes, origin: Origin) -> None:
        """3. Note that a command for a schedule is back, if it was forwarded as a question."""
        if self._is_back(origin) and (count := self._lent(name)) > 0:
            self._lend(name, count - 1)

    def returned_for_nothing(self, record: CommandRecord, origin: Origin) -> None:
        """3. Note that a command is back, as `returned` does, if it cannot be read or executed here."""
        if self._is_back(origin) and (named := self._named_by(record)) is not None:
            self.returned(identity(*named), origin)

    def send_back(self, record: CommandRecord, origin: Origin) -> None:
        """2. Return a question to the partition that asked, which executes or rejects the command.

        Raises RecordTooLargeError.
        """
        self._writes.relay(record, origin, origin.partition)

    def release(self, record: CommandRecord, origin: Origin) -> None:
        """3. Have no partition wait for a command that was passed on because the topic has grown."""
        if origin.partitions and origin.partition == self._partition:
            self.returned_for_nothing(record, origin._replace(asks=False))
        elif origin.partitions:
            self.tell_elsewhere(record, origin)

    def tell_elsewhere(self, record: CommandRecord, origin: Origin) -> None:
        """3. Tell the partition that asked that a command is executed elsewhere. Raises RecordTooLargeError.

        If the command is too large, another one stands for it that names the same schedule.
        """
        try:
            self._writes.relay(record, origin, origin.partition, is_elsewhere=True)
        except RecordTooLargeError:
            if (named := self._named_by(record)) is None:
                return  # nobody could say which command that is
            self._writes.relay(naming(*named), origin, origin.partition, is_elsewhere=True)

    def answer_who_asked(
        self, record: CommandRecord, command: Command, origin: Origin, place: int | None = None
    ) -> None:
        """3. Tell the partition that asked, if any, not to wait for a command that is executed in partition `place`.

        By default that is this one.
        """
        place = self._partition if place is None else place
        if origin.asks and origin.partition not in (place, self._partition):
            key = self._key_of(record, command, None)
            if key is not None and self.home_of(key) == origin.partition:
                self.tell_elsewhere(record, origin)

    def pass_on(
        self, record: CommandRecord, command: Command, name: bytes, current: Entry | None, origin: Origin | None
    ) -> bool:
        """Forward a command that this partition must not execute, or not yet. Return whether it was forwarded.

        Raises InvalidCommand if its copy would be too large.
        """
        if not self.is_active and origin is None:
            return False
        if not self._has_grown and not _asks(origin):
            return False
        key = self._key_of(record, command, current)
        if key is None:
            return False
        home, former = self.home_of(key), self._former_of(key)
        try:
            if home != self._partition:
                return self._pass_home(record, command, current, origin, key)
            if origin is None and former != home and (self._may_have(former, command) or self._lent(name) > 0):
                self._writes.waiting.require_room(former, command.tenant)
                self._writes.relay(record, None, former, asks=True, tenant=command.tenant)
                self._lend(name, self._lent(name) + 1)
                self._transaction.relayed += 1
                return True
        except RecordTooLargeError as error:
            raise InvalidCommand("payload", f"is too large to be forwarded while schedules move: {error}") from error
        return False

    def _pass_home(
        self, record: CommandRecord, command: Command, current: Entry | None, origin: Origin | None, key: bytes
    ) -> bool:
        """2. Forward a command to the partition that its key belongs to, or to the one that may have its schedule."""
        if origin is not None and not origin.asks and origin.partitions >= self.partitioning.partitions:
            return False
        home, former = self.home_of(key), self._former_of(key)
        asks = False
        if current is not None:
            if not (self.leaves(key) and self.move(identity_of(current), current, key)):
                return False
        elif former not in (self._partition, home) and self._may_have(former, command):
            home, asks = former, True
        if origin is None:
            self._writes.waiting.require_room(home, command.tenant)
        self._writes.relay(record, origin, home, asks=asks, tenant=command.tenant if origin is None else "")
        if origin is not None and not asks:
            self.answer_who_asked(record, command, origin, home)
        self._transaction.relayed += 1
        return True

    def move(self, name: bytes, entry: Entry, key: bytes) -> bool:
        """Hand a schedule over to the partition of its key, and record that.

        Return False if it stays, because it is too large or the other partition `is_away`.
        """
        if entry.schedule.key is None:
            entry = Entry(replace(entry.schedule, home_key=key), entry.progress)
        home = self.home_of(key)
        if self.is_away(home):
            return False
        try:
            self._writes.hand_over(key, encode_entry(out_of_log(entry, self._overlay.log_number)), home)
        except RecordTooLargeError:
            return False
        self._transaction.remove(name)
        with self._transaction.history.asked_for_by(None):  # a command may trigger this, but is not the reason
            self._transaction.history.record(EventType.MOVED, name, entry, f"handed over to partition {home}")
        self._transaction.moved += 1
        return True

    def forget_progress(self) -> None:
        """Forget which partitions have handed over everything, and which commands are not back.

        The topic was created again, and what they sent in the log of the old one is gone. When the new topic grows to
        as many partitions as the old one had, schedules may be left to move.
        """
        for key in self._overlay.others.of_growth():
            self._transaction.store_record(key, None)
        self._queue_ends.forget()

    def is_settled(self) -> bool:
        """5. Return whether, before this cycle, nothing was left to move from or to here, or to come back."""
        if self._has_been_settled:
            return True
        former = self.partitioning.former or 0
        ends = self._queue_ends.ends(self.partitioning.partitions)
        if ends is None or self._delaying.waits_before(ends) or not all(map(self._is_emptied, range(former))):
            return False
        waits = self._overlay.others.any_lent or self._has_lent or self._bulk.any_awaited or self._writes.waiting
        return not waits

    def note_waits(self) -> None:
        """5. Note the delayed commands that wait once no more schedules move to here, as some may be bulk commands.

        Call it before taking commands, because it affects how bulk commands are copied.
        """
        if self.is_active and all(map(self._is_emptied, range(self.partitioning.former or 0))):
            self._queue_ends.note(self.partitioning.partitions, self._delaying.ends)

    def note_settled(self) -> None:
        """5. Note that all workers are told that nothing is left. Later bulk commands do not change that."""
        self._queue_ends.settle(self.partitioning.partitions)

    @property
    def may_move(self) -> bool:
        """Whether schedules may be left to move, as far as this partition knows."""
        return self.is_active and not self.is_settled()

    def has_handed_over(self) -> bool:
        """Return whether this partition has handed over everything."""
        return self._is_emptied(self._partition)

    @property
    def has_given_up(self) -> bool:
        """Whether this cycle has abandoned a bulk command."""
        return self._bulk.has_given_up

    def delayed_ends(self) -> dict[str, int]:
        """4. Return the ends of the queues of delayed commands, by tenant. Some of these may have to be forwarded."""
        return self._delaying.ends

    def waits_before(self, ends: Mapping[str, int]) -> bool:
        """4. Return whether a delayed command from before these queue ends still waits."""
        return self._delaying.waits_before(ends)

    def finish(self) -> None:
        """4. Note that this partition has handed over everything, and tell all others."""
        key = emptied_key(self.partitioning.partitions, self._partition)
        self._transaction.store_record(key, encode_emptied())
        self._writes.report_emptied()

    def move_caught_up(self, name: bytes, entry: Entry, key: bytes) -> bool:
        """4. Apply the bulk commands in progress to a schedule, then hand it over. Return whether it is gone."""
        left: Entry | None = entry
        if self._bulk.any_at_work:
            left = self._bulk.catch_up(name, entry)
        return left is None or self.move(name, left, key)

    def home_of(self, key: bytes) -> int:
        """Return the partition that a key belongs to."""
        return partition_for(key, self.partitioning.partitions)

    def is_away(self, partition: int) -> bool:
        """Return whether no schedule is handed over to a partition now: it is unavailable, or records wait for it.

        A schedule would wait behind those, and fire nowhere meanwhile. Other partitions would learn that nothing is
        left to move before it arrives.
        """
        return self._writes.waiting.holds(partition)

    def belongs_elsewhere(self, key: bytes) -> bool:
        """Return whether a key belongs to another partition."""
        return self.home_of(key) != self._partition

    def leaves(self, key: bytes) -> bool:
        """Return whether a schedule with this key is handed over: it belongs elsewhere, and belonged to this partition.

        If it did not belong here, its sender chose the partition, and it stays. Its commands have always come here, and
        this log decides their order.
        """
        return self.belongs_elsewhere(key) and self._former_of(key) == self._partition

    def _key_of(self, record: CommandRecord, command: Command, current: Entry | None) -> bytes | None:
        """Return the key that decides where a command belongs, or None if it does not matter, as the schedule is here.

        A schedule is found by its id wherever it is, so its own key counts.
        """
        if current is not None and current.schedule.key is not None:
            return current.schedule.key
        key = command.key if record.key is None else record.key
        if current is not None and (key is None or self._former_of(key) != self._partition):
            return None
        return command.id.encode() if key is None else key

    def _former_of(self, key: bytes) -> int:
        return partition_for(key, self.partitioning.former or self.partitioning.partitions)

    def _is_emptied(self, partition: int) -> bool:
        former = self.partitioning.former
        if former is None or partition >= former or not self.is_active:
            return True
        return self._overlay.others.get(emptied_key(self.partitioning.partitions, partition)) is not None

    def _may_have(self, former: int, command: Command) -> bool:
        """Return whether the former partition must be asked first, as it may have the schedule.

        A command after a bulk command of its tenant takes the same way, so as not to overtake it.
        """
        is_moving = self.is_active and not self._has_been_settled
        return not self._is_emptied(former) or (is_moving and self._bulk.awaits(command.tenant))

    @property
    def _has_been_settled(self) -> bool:
        return self._queue_ends.has_settled(self.partitioning.partitions)

    def _is_back(self, origin: Origin) -> bool:
        return not origin.asks and origin.partitions > 0 and origin.partition == self._partition

    def _named_by(self, record: CommandRecord) -> tuple[str, str] | None:
        """Return the tenant and the id of the schedule that a command names, or None if it cannot be read."""
        try:
            command = self._dialect.decode(record)
        except TargetMissing as error:
            command = error.command
        except InvalidCommand:
            envelope = self._dialect.salvage(record)
            return None if envelope.id is None else (envelope.tenant, envelope.id)
        return command.tenant, command.id

    def _lent(self, name: bytes) -> int:
        record = self._overlay.others.get(lent_key(name))
        return 0 if record is None else decode_lent(record)

    def _lend(self, name: bytes, count: int) -> None:
        self._has_lent |= count > 0
        self._transaction.store_record(lent_key(name), encode_lent(count) if count else None)


def _asks(origin: Origin | None) -> bool:
    return origin is not None and origin.asks
