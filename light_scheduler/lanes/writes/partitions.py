"""Records that a cycle writes to other partitions of its commands topic.

A command that arrived in the wrong partition is copied to the partition of its key, and a bulk command to all:
`cycle.routing`, `bulk` and `growing` decide when. Records for an unavailable partition wait for it.
"""

from __future__ import annotations

from light_scheduler.errors import InvalidCommand, LaneError
from light_scheduler.model import Headers
from light_scheduler.model.adoption import Emptied
from light_scheduler.model.arrival import offset_of
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.handover import adoption_headers, emptied_headers
from light_scheduler.wire.lane_marks import (
    FORWARDED_FROM,
    Count,
    Grown,
    Origin,
    ReachKind,
    count_headers,
    forwarded,
    relayed,
    require_relayed,
    require_spread,
    spread,
)
from light_scheduler.wire.partitioner import chooser
from light_scheduler.wire.record import Copy
from light_scheduler.wire.waiting_state import WaitingRecord

from .transaction import Transaction
from .waiting import WaitingWrites


class PartitionWrites:
    """Writes to the partitions of a commands topic, as part of a transaction. `waiting` has writes that must wait."""

    def __init__(self, transaction: Transaction, waiting: WaitingWrites) -> None:
        context = transaction.context
        self._topic = context.commands_topic
        self._partition = context.partition
        self.partitioning = context.partitioning
        self._partitions = self.partitioning.partitions
        self.home_of = chooser(self._partitions)
        """Returns the partition that a key belongs to."""
        self.waiting = waiting

    @property
    def others(self) -> list[int]:
        """All partitions but the lane's own."""
        return [partition for partition in range(self._partitions) if partition != self._partition]

    def is_home(self, key: bytes) -> bool:
        """Return whether a key belongs to this lane's own partition."""
        return self.home_of(key) == self._partition

    def require_passed_on(self, record: CommandRecord, origin: Origin) -> None:
        """Raise InvalidCommand if the partition of a record's origin cannot have forwarded it to this one.

        Raise LaneError if this lane does not know enough. In a grown topic, the origin may be this partition, as
        commands that it forwarded come back.
        """
        if origin.partitions:
            require_relayed(record, self._topic, self.partitioning.secret)
        elif origin.reach is not None:
            require_spread(record, self._topic, self.partitioning.secret)
        elif not self.knows(origin) or (self.partitioning.former is None and origin.partition == self._partition):
            raise InvalidCommand(FORWARDED_FROM, "names a partition from which nothing is passed on")
        if not self.knows(origin):
            raise LaneError(f"another partition knows {_named_by(origin)} partitions, this one {self._partitions}")

    def knows(self, origin: Origin) -> bool:
        """Return whether the topic has all partitions that a record's origin names, as far as this lane knows.

        The lane stores no record from an unknown origin, and a topic loses no partitions. So if a stored record has
        one, it is from a topic that was deleted and created again.
        """
        return _named_by(origin) <= self._partitions

    def copy(
        self,
        record: CommandRecord,
        partition: int,
        token: str = "",  # nosec B107 # none
        tenant: str = "",
    ) -> None:
        """Forward a command, which counts for a `tenant` while it waits. A bulk command has a `token`.

        Raises RecordTooLargeError.
        """
        self._write(partition, record.key, record.value, forwarded(self._named(record), token), tenant)

    def spread(self, record: CommandRecord, partition: int, token: str, kind: ReachKind, tenant: str) -> None:
        """Copy a bulk command in a grown topic. Raises RecordTooLargeError."""
        headers = spread(record, token, kind, Grown(self._topic, self._partitions, self.partitioning.secret))
        self._write(partition, record.key, record.value, headers, tenant)

    def relay(
        self,
        record: CommandRecord,
        origin: Origin | None,
        partition: int,
        *,
        asks: bool = False,
        is_elsewhere: bool = False,
        tenant: str = "",
    ) -> None:
        """Forward a command, or a copy of one, in a grown topic. Raises RecordTooLargeError."""
        grown = Grown(self._topic, self._partitions, self.partitioning.secret)
        headers = relayed(self._named(record, asks=asks), origin, grown, asks=asks, is_elsewhere=is_elsewhere)
        self._write(partition, record.key, record.value, headers, tenant)

    def _named(self, record: CommandRecord, *, asks: bool = False) -> CommandRecord:
        """Return a record with the place that its copies name: where it was sent, if that partition still exists.

        Else, and if this lane `asks` for the command to come back, they name this lane's own partition.
        """
        if isinstance(record, Copy) and (asks or record.sent[0] >= self._partitions):
            return record._replace(sent=(record.partition, offset_of(record.offset)))
        return record

    def hand_over(self, key: bytes, value: bytes, partition: int) -> None:
        """Move a schedule, as its state record, to another partition. Raises RecordTooLargeError."""
        headers = adoption_headers(self._partition, value, self.partitioning.secret)
        self._write(partition, key, value, headers)

    def report_emptied(self) -> None:
        """Tell all other partitions that this one has handed over all schedules that belong elsewhere."""
        headers = emptied_headers(Emptied(self._partition, self._partitions), self.partitioning.secret)
        for partition in self.others:
            self._write(partition, None, None, headers)

    def report(self, count: Count, partition: int) -> None:
        """Report how many schedules a bulk command has changed here."""
        self._write(partition, None, None, count_headers(count))

    def _write(
        self, partition: int, key: bytes | None, value: bytes | None, headers: Headers, tenant: str = ""
    ) -> None:
        self.waiting.write(partition, WaitingRecord(key, value, headers, tenant=tenant))


def _named_by(origin: Origin) -> int:
    """Return the least number of partitions that a topic has in which a record was passed on from there."""
    return max(origin.partition + 1, origin.partitions, 0 if origin.reach is None else origin.reach.partitions)
