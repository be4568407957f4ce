"""Warm copies of partitions that other workers own.

A standby follows the partition's changelog into the folder that a lane of this worker would use. When the partition
comes to this worker, the lane takes the open table over and has only the tail to read. Who stands by for whom is in the
assignment (see `agents.assignment.shares`): standbys are spread, and when an owner is gone, those that stand by take
over.

A standby sees only committed transactions, but may have half of the last one. That is safe: its copy has no gaps, and
a lane reads the rest after it has fenced the former owner.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.errors import FormatError, StateCorrupt, StateFull
from light_scheduler.kafka.supervision import Supervision

from .changelog import PartitionLogs, reading
from .local_copy import LocalCopy
from .recovery import Replaying
from .services import LaneServices
from .status import StandbyStatus
from .table import ScheduleTable
from .usable_copy import check_fresh

PACE_S = 0.1
"""Pause between two reads. Records that arrive meanwhile are applied in one write."""

POLL_MS = 200
CHECKPOINT_MS = 60_000
"""How often a standby looks up the end of its changelog and stores that it has reached it, so that the copy does not
become too old.
"""

HAND_OVER_TIMEOUT_S = 5.0
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 10.0

log = logging.getLogger(__name__)


class Standby:
    """Keeps one partition's copy warm, from `start` until `hand_over` or `close`."""

    def __init__(self, tp: TopicPartition, changelog: TopicPartition, services: LaneServices, state_path: Path) -> None:
        self.tp = tp
        self._changelog = changelog
        self._services = services
        self._reason: str | None = None
        self._end: int | None = None
        name = f"the standby for {tp.topic}-{tp.partition}"
        fields = {"topic": tp.topic, "partition": tp.partition}
        self._supervision = Supervision(name, log, FIRST_RETRY_S, LAST_RETRY_S, fields)
        self._copy = LocalCopy(PartitionLogs(tp, changelog), state_path, services, self._supervision.is_stopping)

    def start(self, predecessor: asyncio.Task[None] | None) -> None:
        """Start. Waits for a predecessor that is still closing the folder."""
        self._supervision.start(self._follow, self._failed, self._services.fail, predecessor)

    async def hand_over(self) -> ScheduleTable | None:
        """Stop, and return the open table for the lane that takes over; None if there is none."""
        self._supervision.stop()
        self._services.loads.look_again()
        if not await self._supervision.end(HAND_OVER_TIMEOUT_S):
            self._copy.close()
        return self._copy.give_away()

    async def close(self) -> None:
        """Stop, and close the table."""
        if (table := await self.hand_over()) is not None:
            table.close()

    def status(self) -> StandbyStatus:
        """Return the status of the copy."""
        table, restoration = self._copy.table, self._copy.restoration
        checkpoint = None if table is None else table.checkpoint
        at = None if checkpoint is None else checkpoint.changelog_offset
        return StandbyStatus(
            topic=self.tp.topic,
            partition=self.tp.partition,
            reason=self._reason,
            pending=0 if checkpoint is None else checkpoint.pending,
            lag=None if at is None or self._end is None else max(0, self._end - at),
            restore=None if restoration is None else restoration.status(),
        )

    async def _failed(self, error: Exception) -> bool:
        """Close the copy and return whether to start again."""
        if isinstance(error, StateFull):
            self._copy.close()
            await self._services.fail(error)
            return False
        if isinstance(error, FormatError):  # retrying would read the same bytes; the owner's lane logs the details
            log.warning("cannot keep a standby of %s-%d: %s", *self.tp, error)
            self._reason = str(error)
            self._copy.close()
            return False
        self._supervision.log_restart(error)
        self._reason = str(error) or repr(error)
        self._copy.close()
        if isinstance(error, StateCorrupt):
            self._copy.condemn()
        await self._supervision.pause(self._supervision.next_retry_s())
        return True

    async def _follow(self) -> None:
        """Catch up with the changelog, then keep up."""
        table, _ = await self._copy.bring_up()
        if self._supervision.is_stopping():
            return
        log.info("a standby for %s-%d is warm: %d schedules pending", *self.tp, table.pending)
        self._reason = None
        async with reading(self._services.clients) as reader:
            reader.assign([self._changelog])
            reader.seek(self._changelog, table.checkpoint.changelog_offset)
            await self._keep_up(table, reader)

    async def _keep_up(self, table: ScheduleTable, reader: AIOKafkaConsumer) -> None:
        clock, replaying, facts = self._services.clock, Replaying(table), self._copy.facts
        assert facts is not None, "the table is open"
        looked_at = latest = table.checkpoint.complete_at  # a clock that is set back does not make the copy younger
        end: int | None = None  # end of the changelog at `looked_at`, until it is reached
        while not self._supervision.is_stopping():
            records = (await reader.getmany(timeout_ms=POLL_MS)).get(self._changelog)
            latest = max(latest, clock.now())
            if records:
                check_fresh(table, facts, latest)
                await replaying.take(records)
            at = await reader.position(self._changelog)
            if end is not None and at >= end:
                check_fresh(table, facts, max(latest, clock.now()))
                await replaying.finish(at, looked_at)
                latest, end = looked_at, None
            if end is None and not 0 <= clock.now() - looked_at <= CHECKPOINT_MS:  # or the clock was set back
                looked_at = clock.now()
                end = (await reader.end_offsets([self._changelog]))[self._changelog]
            self._end = reader.last_stable_offset(self._changelog)
            if self._end is not None and at >= self._end:
                self._end = table.checkpoint.changelog_offset  # only markers are left
            await self._supervision.pause(PACE_S)
