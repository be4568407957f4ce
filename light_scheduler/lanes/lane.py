"""A lane: the data path of one partition of a commands topic, from the first command to the last firing.

This module has its life cycle, and `cycles` its cycles. The steps of the commit protocol, as numbered in the code:

    0. Before reading anything, fence all transactional ids of the partition (`kafka.fencing`), which aborts the open
       transactions of older owners and locks them out. Then bring the table up to the end of the changelog, take the
       input position from it, and read commands from there on.
    1. Take commands and due schedules: one cycle is one transaction for both.
    2. Run the engine. Collect its changes in an overlay, and its records in batches.
    3. Send the batches and await all answers, then send the input offsets to the transaction, then commit.
    4. Only then, write once to the table: the changes and the changelog offset that they reach.
    5. On any error or deadline, drop the overlay and the producer, make sure that this worker still owns the partition,
       and restart at 0.
    6. On revocation, do nothing until the next assignment. Then lanes that stay go on, and lanes that moved to another
       worker are closed with a deadline (see `assigned_lanes`).

Step 0 recovers from a crash between 3 and 4, by applying the changelog from the table's offset on. It also recovers
from a crash after 4, which can lose the last writes to the table (see `tables.rocks`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.errors import (
    BrokerError,
    FormatError,
    LaneError,
    Overtaken,
    StateCorrupt,
    StateError,
    StateForeign,
    StateFull,
    TransactionStuck,
)
from light_scheduler.kafka.clients import no_stray_cancellation
from light_scheduler.kafka.continuity import Continuity
from light_scheduler.kafka.fencing import Fencing
from light_scheduler.kafka.refusals import RecordsRefusedError, TargetsStalledError
from light_scheduler.kafka.supervision import FIRST_RETRY_S, Supervision
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.model.lane_state import LaneState
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.changelog import PartitionLogs, is_untouched, nothing_counts
from light_scheduler.tables.local_copy import LocalCopy
from light_scheduler.tables.services import LaneServices

from .alarm import Alarm
from .context.lane_context import LaneContext
from .context.status import NO_CHANGELOG, NOT_YET_USED, RULES_UNREAD
from .cycles import LaneCycles
from .failures.failing_work_search import WorkFailedError
from .input.incoming import Incoming
from .input.intake import Intake
from .input.position import InputPosition
from .input.readable import Readable

TENANTS_RETRY_S = 0.5
"""How often a lane that waits for tenants' rules checks whether it has to close."""

OUTAGE_RETRY_S = 1.0
"""Maximum wait between attempts while the broker fails. Once it is back, firings are late, and an attempt is cheap."""

PARTITIONING_POLL_S = 0.2
"""How often the lane of an added partition checks whether the partition is in use."""

log = logging.getLogger(__name__)


class Lane:
    """The data path of one partition. `start` begins its task, which ends when the lane is closed."""

    def __init__(self, context: LaneContext, services: LaneServices, state_path: Path) -> None:
        self.context = context
        self.tp = TopicPartition(context.commands_topic, context.partition)
        self.state = LaneState.CREATED
        self.reason: str | None = None
        self.fenced = asyncio.Event()
        changelog = TopicPartition(*context.changelog)
        self.copy = LocalCopy(PartitionLogs(self.tp, changelog), state_path, services, self.is_closing, is_lane=True)
        self.input = InputPosition(self.tp, context.names.app_id, changelog.topic, time.monotonic)
        self._services = services
        self._producer: TransactionalProducer | None = None
        self._alarm = Alarm(services.new_timer)
        self.intake = Intake(self._alarm.ring, services.make_room)
        self.readable = Readable(context.dialect, services.schema_registry, self._alarm.ring)
        self._incoming = Incoming(self.intake, self.readable, self.input)
        self._cycles = LaneCycles(
            context,
            services,
            incoming=self._incoming,
            alarm=self._alarm,
            is_closing=self.is_closing,
        )
        self.counters, self.skew = self._cycles.counters, self._cycles.skew
        self._fencing = Fencing(context.names.transactional_id(*self.tp), self._fence)
        self._listeners = [context.targets.outages.changed, context.tenants.changed]
        if context.partitionings is not None:
            self._listeners.append(context.partitionings.changed)
        self._backlog_end = 0
        self._abandoned: list[asyncio.Task[None]] = []
        self._warm: asyncio.Task[ScheduleTable | None] | None = None
        topic, partition = self.tp
        fields = {"topic": topic, "partition": partition}
        self._supervision = Supervision(f"lane {topic}-{partition}", log, fields=fields)

    @property
    def partitioning(self) -> Partitioning | None:
        """The partitioning of keys in its topic, or None if unknown or the topic never grows."""
        partitionings = self.context.partitionings
        return None if partitionings is None else partitionings.of(self.tp.topic)

    @property
    def next_due(self) -> int | None:
        """When the next pending firing is due (UTC epoch ms)."""
        return self._cycles.next_due

    @property
    def is_committing(self) -> bool:
        """Whether consumers may already read a transaction that the table does not have yet."""
        return self._producer is not None and self._producer.is_committing

    async def applied(self) -> None:
        """Wait until the transaction being committed is in the table, or the lane restarts."""
        if self._producer is not None:
            await self._producer.rests()

    def start(
        self, predecessor: asyncio.Task[None] | None, warm: asyncio.Task[ScheduleTable | None] | None = None
    ) -> None:
        """Start the lane. A predecessor that is still closing holds the partition's state, so the lane waits for it.

        `warm` returns the open table of a standby, or None.
        """
        self._warm = warm
        for listeners in self._listeners:
            listeners.append(self._alarm.ring)
        self.context.rate_post.open(self._alarm.ring)
        self._supervision.start(self._live, self._failed, self._services.fail, predecessor)

    async def close(self) -> None:
        """Stop taking commands, give the current cycle a limited time to end, then close the producer and the table."""
        self._move(LaneState.CLOSING)
        self.intake.close()
        self.readable.close()
        self._alarm.close()
        self.context.rate_post.close()
        await self._supervision.end()
        for listeners in self._listeners:
            if self._alarm.ring in listeners:
                listeners.remove(self._alarm.ring)
        await self._fencing.close()
        await self._discard_producer()
        if self._abandoned:
            await asyncio.wait(self._abandoned)
        self.copy.close()
        if self._warm is not None and (table := await self._warm) is not None:
            table.close()
        self._move(LaneState.CLOSED)

    def is_closing(self) -> bool:
        return self.state in (LaneState.CLOSING, LaneState.CLOSED)

    async def _live(self) -> None:
        await self._take_over()
        while not self.is_closing():
            await self._cycle()
            self._supervision.went_well()

    async def _cycle(self) -> None:
        """Run a cycle. Work that raises an error is refused in the next cycle. All other work is done again."""
        if self.copy.table is None or self._producer is None:
            return  # closed meanwhile
        try:
            await self._cycles.cycle(self.copy.table, self._producer)
        except WorkFailedError as failed:
            self._cycles.failures.condemn(failed)
            if self.copy.table is not None and not self.is_closing():  # read the cycle's commands again
                self._incoming.open(self.copy.table.checkpoint.position, self._backlog_end)

    async def _failed(self, error: Exception) -> bool:
        """5. Recover from an error, and make sure that this worker still owns the partition.

        Return False if the lane cannot go on.
        """
        if isinstance(error, FormatError | StateForeign | StateFull):  # a restart would fail the same way
            log.error("lane %s-%d cannot run, so this worker ends: %s", *self.tp, error)
            await self._recover(error)
            await self._services.fail(error)
            return False
        if not await self._go_on_without(error):
            await self._start_again(error)
        return True

    async def _go_on_without(self, error: Exception) -> bool:
        """Go on without the unresponsive targets or refused records that an error names. Return False if none."""
        try:
            with no_stray_cancellation():
                if isinstance(error, TargetsStalledError):
                    await self._set_aside(error)
                elif isinstance(error, RecordsRefusedError) and error.of_users:
                    await self._cycles.failures.refused(error)
                    await self._recover(error)
                    await self._confirm()
                else:
                    return False
        except Exception as another:  # noqa: BLE001 - the lane restarts, as after any error
            log.warning("lane %s-%d, on %r: %r", *self.tp, error, another)
            return False
        return True

    async def _start_again(self, error: Exception) -> None:
        self._supervision.log_restart(error)
        may_count = self._producer is None or self._producer.is_committing
        is_soon = self._cycles.failures.failed(error, may_count=may_count)
        if isinstance(error, TransactionStuck):
            self._abandon_producer()
        await self._recover(error)
        is_outage = isinstance(error, BrokerError | LaneError | KafkaError)
        retry_s = self._supervision.next_retry_s(OUTAGE_RETRY_S if is_outage else None)
        await self._supervision.pause(FIRST_RETRY_S if is_soon else retry_s)
        await self._confirm()

    async def _set_aside(self, stalled: TargetsStalledError) -> None:
        """Go on without targets that do not answer. Their firings wait, and do not use up an attempt."""
        log.warning("lane %s-%d continues without the targets that do not answer: %s", *self.tp, stalled)
        suspects = self._cycles.failures.stalled(stalled)
        self._abandon_producer()
        await asyncio.gather(self.context.targets.suspect(suspects, "it does not answer"), self._recover(stalled))
        await self._confirm()

    async def _confirm(self) -> None:
        await self._supervision.confirm(lambda: self._services.confirm(self.tp))

    async def _fence(self, transactional_id: str) -> bool:
        return await self._services.clients.fence(transactional_id, self._cycles.failures.changelog)

    async def _take_over(self) -> None:
        """0. Fence, restore, and continue reading from the position in the restored state."""
        producer = TransactionalProducer(self._services.clients, await self._fencing.take_over())
        self._producer = producer
        await producer.fence()
        self.fenced.set()
        if self.is_closing():
            return
        self._move(LaneState.FENCED)
        self._move(LaneState.RESTORING)
        if self._warm is not None:
            self.copy.adopt(await asyncio.shield(self._warm))
            self._warm = None
        # Before the partitioning and the log's ends: if the log is replaced in between, it turns out to be another one
        # before anything is committed that is about the former.
        commands_id = await self._services.commands_ids.now(self.tp.topic)
        await self._await_use()
        table, restored = await self.copy.bring_up(are_markers_late=self._fencing.found_stuck)
        await self._know_tenants()
        if self.is_closing():
            return
        changelog = self.context.changelog
        place = self._services.clients, TopicPartition(*changelog)
        await self._cycles.decide(partial(nothing_counts, *place))
        untouched = partial(is_untouched, *place)
        await self._cycles.notice_others(restored.end, untouched)
        producer.continuity = Continuity(changelog, restored.end, untouched)
        table.checkpoint = self.input.place(table.checkpoint, commands_id, restored.backlog_begin, restored.backlog_end)
        position = table.checkpoint.position
        log.info(
            "lane %s-%d runs: %d changelog records applied, %d schedules pending, commands %d to %d waiting",
            *self.tp,
            restored.records,
            table.pending,
            position,
            restored.backlog_end,
        )
        self._move(LaneState.RUNNING)
        self.reason = None
        self._backlog_end = restored.backlog_end
        self._incoming.open(position, restored.backlog_end)
        self._alarm.ring()

    async def _know_tenants(self) -> None:
        """Wait for tenants' rules: paused schedules must not fire because a worker has started."""
        while not self.is_closing():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TENANTS_RETRY_S):
                    await self.context.tenants.loaded()
                    return
            self.reason = RULES_UNREAD

    async def _await_use(self) -> None:
        """Wait until the partition is in use, that is, until keys may belong to it, and its changelog has it."""
        while not self.is_closing() and (reason := await self._unused_because()) is not None:
            self.reason = reason
            self._services.loads.withdraw(self.copy)
            await asyncio.sleep(PARTITIONING_POLL_S)

    async def _unused_because(self) -> str | None:
        """Return why an added partition is not in use yet; None if it is."""
        partitionings = self.context.partitionings
        if partitionings is not None:
            await partitionings.refresh(*self.tp)
            known = self.partitioning
            return None if known is not None and self.tp.partition < known.partitions else NOT_YET_USED
        if self.context.dialect.forwards:
            return None
        return None if await self._has_changelog() else NO_CHANGELOG

    async def _has_changelog(self) -> bool:
        """Return whether the changelog has this partition, or cannot be written to at all."""
        targets, (topic, partition) = self.context.targets, self.context.changelog
        await targets.resolve({topic})
        if partition >= targets[topic].partitions:  # it may have got more since
            targets.forget({topic})
            await targets.resolve({topic})
        return targets[topic].refusal is not None or partition < targets[topic].partitions

    async def _recover(self, error: BaseException) -> None:
        """5. Drop the begun cycle and the producer, and what else an error makes unusable."""
        if not self.is_closing():
            self._move(LaneState.FAILED)
        self.reason = str(error) or repr(error)
        self.counters.restarted()
        self.context.targets.forget_all()  # a topic may have been deleted or changed
        self.intake.close()
        await self._discard_producer()
        # Until a commit, only the checkpoint in memory names the new log of a topic that was created again.
        if isinstance(error, StateError | BrokerError) or self.input.is_in_another_log:
            self.copy.close()
        if isinstance(error, Overtaken):
            self.copy.facts = None  # the changelog may have been recreated
            self._cycles.failures.note_committed(0)
        if isinstance(error, StateCorrupt):
            log.warning("lane %s-%d rebuilds its state from the changelog", *self.tp)
            self.copy.condemn()

    def _abandon_producer(self) -> None:
        """Drop a producer whose transaction cannot be aborted in time. Fencing will abort it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            self._abandoned = [task for task in self._abandoned if not task.done()]
            self._abandoned.append(asyncio.create_task(producer.abandon(), name=f"letting go of {self.tp}"))

    async def _discard_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    def _move(self, target: LaneState) -> None:
        self.state = self.state.to(target)
