"""Routes a command to the partition of its key, whichever partition it was sent to."""

from __future__ import annotations

from contextlib import suppress

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.growing.moving import Moving
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import PARTITION_AWAY, Command, Entry, EventType, ScheduleCommand
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import Origin, mark_of
from light_scheduler.wire.record import sent_at


class CommandRouting:
    """Command routing of one cycle.

    `writes` are the writes to other partitions. `moving` routes while schedules move between partitions.
    """

    def __init__(self, transaction: Transaction, writes: PartitionWrites, moving: Moving) -> None:
        self.writes = writes
        self.moving = moving
        self._transaction = transaction
        self._forwards = transaction.context.dialect.forwards

    def pass_on(self, record: CommandRecord, command: Command, name: bytes, current: Entry | None) -> bool:
        """Forward a command that was sent here but belongs to another partition. Return whether it was forwarded."""
        if self.moving.is_active:
            return self.moving.pass_on(record, command, name, current, None)
        return current is None and self._copy_home(record, command)

    def origin_of(self, record: CommandRecord) -> Origin | None:
        """Return the origin of a record that a worker has forwarded, or None."""
        with suppress(InvalidCommand):
            if (origin := self._named_origin(record)) is not None:
                self.writes.require_passed_on(record, origin)
                return origin
        return None

    def lost_origin(self, delayed: CommandRecord) -> Origin | None:
        """Return the origin of a delayed command if it names partitions that do not exist, or None.

        The topic was deleted and created again with fewer partitions. A command then counts as if it had just arrived
        here, and the copy of a bulk command as one that changes nothing.
        """
        with suppress(InvalidCommand):
            origin = self._named_origin(delayed)
            return None if origin is None or self.writes.knows(origin) else origin
        return None

    def _named_origin(self, record: CommandRecord) -> Origin | None:
        mark = mark_of(record) if self._forwards else None
        return mark if isinstance(mark, Origin) else None

    def _copy_home(self, record: CommandRecord, command: Command) -> bool:
        """Copy a command to the partition of its key, if that is another one. Its schedule is not here."""
        key = command.key if record.key is None else record.key
        key = command.id.encode() if key is None else key
        if not self._forwards or self.writes.is_home(key):
            return False
        home = self.writes.home_of(key)
        waits = self.writes.waiting.holds(home)
        self.writes.waiting.require_room(home, command.tenant)
        if waits and isinstance(command, ScheduleCommand):  # it is stored here until then, like a schedule
            self._transaction.context.limits.check_room(self._transaction.overlay.pending + self.writes.waiting.waiting)
        try:
            if sent_at(record).partition == home:  # no other copy may come back to where it was sent
                self.writes.relay(record, None, home, tenant=command.tenant)
            else:
                self.writes.copy(record, home, tenant=command.tenant)
        except RecordTooLargeError:
            return False
        self._transaction.forwarded += 1
        way = f"partition {home}, that of its key"
        told = f"waits for {way}, {PARTITION_AWAY}" if waits else f"was passed on to {way}"
        reason = f"the command {command.name} {told}"
        self._transaction.history.record_command(EventType.MOVED, command.tenant, command.id, reason)
        return True
