"""Deals with records that have waited for another partition of the commands topic and cannot be sent any more.

The topic was deleted and created again, perhaps with fewer partitions, or takes only smaller records than before. In
another topic, nobody would understand what such a record says of partitions, and one that is too large would hold up
all that are behind it:

    a command                          is executed or forwarded as if it had just arrived here; if it is too large, it
                                       is rejected with a dead letter and an answer
    a copy of a bulk command           counts as the report that its partition is missing, so the command is answered
    the report of a bulk command, and  is sent again if its partition exists, as that waits for it; otherwise, or if it
    the news that a command is         is too large, it is dropped
    executed elsewhere
    the news that a partition has      is dropped: it is about a growth of the former topic
    nothing left to move

Schedules never wait (see `Moving.is_away`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.failures.condemned_work import Condemned, blaming, enduring
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.growing.moving import Moving
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.lanes.writes.waiting import WaitingWrites
from light_scheduler.model.arrival import arrival_in
from light_scheduler.model.place import Place
from light_scheduler.wire.lane_marks import Count, Origin, as_sent, mark_of
from light_scheduler.wire.record import Copy, UnsentRecord
from light_scheduler.wire.waiting_state import WaitingRecord

from .commands import Commands

log = logging.getLogger(__name__)


class StrandedWrites:
    """Deals with such records in one cycle. `works` are those that it dealt with, as work that can fail.

    `dropped` says for each record that never arrives, other than a command, why it does not.
    """

    def __init__(
        self,
        transaction: Transaction,
        waiting: WaitingWrites,
        commands: Commands,
        moving: Moving,
        bulk: BulkCommands,
        condemned: Condemned,
    ) -> None:
        self._topic = transaction.context.commands_topic
        self._partition = transaction.context.partition
        self._log = transaction.overlay.log_number
        self._waiting = waiting
        self._commands = commands
        self._moving = moving
        self._bulk = bulk
        self._condemned = condemned
        self.works: list[Work] = []
        self.dropped: list[str] = []

    def strand(
        self, partition: int, number: int, record: WaitingRecord, refusal: RecordTooLargeError | None = None
    ) -> None:
        """Deal with the record for a partition that has a number in the queue. It is not too large without a refusal.

        Raises WorkFailedError if that fails.
        """
        work = Work(Kind.COMMAND, -1 - (number << 32 | partition))  # commands that are read have their offsets
        self.works.append(work)
        with blaming(lambda: work):
            failure = self._condemned.meet(work) if self._condemned else None
            kept = UnsentRecord(record.key, record.value, record.headers, partition=partition)
            mark = mark_of(kept)
            if isinstance(mark, Origin) and not mark.token and not mark.is_elsewhere:
                self._end_command(as_sent(kept, mark), mark, partition, refusal, failure)
            elif failure is not None or not self._send_again(kept, mark, partition, refusal):
                why = failure or refusal or f"topic {self._topic} was deleted and created again"
                self.dropped.append(f"what waits for partition {partition} cannot be sent any more: {why}")
                if isinstance(mark, Origin) and mark.token and failure is None:
                    self._bulk.miss(mark, partition)

    def _end_command(
        self, sent: Copy, origin: Origin, partition: int, refusal: RecordTooLargeError | None, failure: str | None
    ) -> None:
        # It was `sent` to the origin's place, in a log before this one, unless it is too large for its partition.
        arrival = arrival_in(max(0, self._log - 1), origin.offset)
        here = sent._replace(partition=self._partition, offset=arrival)
        with enduring(f"partition {origin.partition} cannot be told that a command does not come back"):
            self._moving.release(sent, origin)
        if failure is not None:
            self._commands.refuse(here, failure)
        elif refusal is None:
            self._commands.take(here)
        else:
            reason = f"has waited for partition {partition}, and is too large to be passed on by now: {refusal}"
            self._commands.reject(here, InvalidCommand("payload", reason))

    def _send_again(
        self, kept: UnsentRecord, mark: object, partition: int, refusal: RecordTooLargeError | None
    ) -> bool:
        """Send a record in which its partition has an interest, if that exists. Return whether it was sent."""
        if self._waiting.is_gone(partition):
            return False
        try:
            if isinstance(mark, Origin) and mark.is_elsewhere:
                self._moving.tell_elsewhere(as_sent(kept, mark), mark)
                return True
            if isinstance(mark, Count) and refusal is None:
                self._waiting.write(partition, WaitingRecord(kept.key, kept.value, list(kept.headers)))
                return True
        except RecordTooLargeError:
            return False
        return False


def log_dropped(place: Place, dropped: Sequence[str]) -> None:
    """Log the first of the records that a cycle of a partition's lane has dropped, and how many there were."""
    if dropped:
        others = f" ({len(dropped) - 1} more were dropped)" if len(dropped) > 1 else ""
        log.warning("lane %s-%d: %s%s", *place, dropped[0], others)
