"""A lane: the data path of one partition of a commands topic, from the first command to the last firing.

The commit protocol, by the numbers that stand in the code:

    0. Before anything is read: become the owner of the transactional id `{app}-{commands topic}-{partition}`, which
       aborts older owners' transactions and fences them. Then bring the table up to the changelog's last stable offset,
       take the input position from it, and read commands from there on.
    1. Take commands and what is due: one cycle is one transaction for both.
    2. Run the engine; its changes are collected in an overlay, its records in batches.
    3. Send the batches and await every answer; then send the input offsets to the transaction; then commit.
    4. Only then: one write to the table, holding the changes and the changelog offset that they reach.
    5. On any error or deadline: drop the overlay and the producer, make sure that the partition is still ours, and
       start again at 0.
    6. On revocation nothing happens until the next assignment: lanes that stay go on; those that went elsewhere are
       closed under a deadline (see `lanes.Lanes`).

A crash between 3 and 4 is healed at 0, by applying the changelog from the offset that the table has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.engine import ALL, FairQueue, Throttle
from light_scheduler.errors import (
    BrokerError,
    FormatError,
    LaneError,
    SchedulerError,
    StateCorrupt,
    StateError,
    StateFull,
)
from light_scheduler.model import EventType, Outcome
from light_scheduler.tables import DueScan, Overlay, ScheduleTable
from light_scheduler.wire.state import identity_of

from .batches import RecordBatches, RecordsRefusedError
from .clients import no_stray_cancellation
from .context import LaneContext, origin_key
from .cycle import Cycle
from .intake import Intake
from .isolation import Isolation
from .life import LaneState
from .local_copy import LocalCopy
from .pace import MOST, Pace
from .producer import LaneProducer
from .services import LaneServices
from .skew import ClockSkew
from .staging import NO_STAGING
from .status import Lateness

MAX_FIRING_BYTES = 8 << 20
MAX_SWEPT = 500
MAX_ISOLATED = 200
"""Per cycle: bytes of firings; schedules that a command for many is carried out on; and commands, or firings, while a
refused record is sought. Else see `pace`."""

MAX_LOOKED_AT = 200
"""Commands that may wait while firings are staged: with more, they come first whatever they say."""

TOUCH_MS = 3_600_000
"""So often a lane with nothing to do commits that nothing happened: its local copy would count as too old otherwise."""

CLOSE_TIMEOUT_S = 3.0
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0
OUTAGE_RETRY_S = 1.0
"""How long a lane waits at most between attempts while it is the broker that fails: from its return on firings are
late, and an attempt costs next to nothing."""


log = logging.getLogger(__name__)


@dataclass
class LaneCounters:
    """What a lane has done since this worker took the partition over."""

    outcomes: Counter[Outcome]
    events: Counter[EventType]
    lateness: Lateness
    transactions: int = 0
    restarts: int = 0
    staged: int = 0
    unstaged: int = 0
    lost_results: int = 0
    throttled: int = 0
    forwarded: int = 0


class Lane:
    """One partition's data path. `run` is its task; it ends when the lane is closed."""

    def __init__(self, context: LaneContext, services: LaneServices, state_path: Path) -> None:
        self.context = context
        self.tp = TopicPartition(context.commands_topic, context.partition)
        self.state = LaneState.CREATED
        self.reason: str | None = None
        self.fenced = asyncio.Event()
        self.copy = LocalCopy(self.tp, TopicPartition(*context.changelog), state_path, services, self.is_closing)
        self.next_due: int | None = None
        self.skew = ClockSkew(f"{self.tp.topic}-{self.tp.partition}", services.max_clock_skew, time.monotonic)
        self.counters = LaneCounters(Counter(), Counter(), Lateness())
        self._services = services
        self._producer: LaneProducer | None = None
        self._wake = asyncio.Event()
        self.intake = Intake(self._wake.set, services.make_room)
        self._timer = services.new_timer(self._wake.set)
        self._fair = FairQueue(context.shares.weights)
        self._throttle = Throttle(context.shares)
        self._pace = Pace()
        self._isolation = Isolation(f"{self.tp.topic}-{self.tp.partition}", context.targets)
        self._stopping = asyncio.Event()
        self._warm: asyncio.Task[ScheduleTable | None] | None = None
        self._task: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(
        self, predecessor: asyncio.Task[None] | None, warm: asyncio.Task[ScheduleTable | None] | None = None
    ) -> None:
        """Begin; a predecessor that is still closing holds the partition's state, and is waited for.

        `warm` brings the open table of a standby, or none.
        """
        self._warm = warm
        name = f"lane {self.tp.topic}-{self.tp.partition}"
        self._task = asyncio.create_task(self._run(predecessor), name=name)

    async def close(self) -> None:
        """Stop taking commands, let the open cycle end within a bound, then let go of the producer and the table."""
        self._move(LaneState.CLOSING)
        self.intake.close()
        self._timer.cancel()
        self._stopping.set()
        self._wake.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_S)
            if not done:
                self._task.cancel()
                await asyncio.wait([self._task])
        await self._discard_producer()
        self.copy.close()
        if self._warm is not None and (table := await self._warm) is not None:
            table.close()
        self._move(LaneState.CLOSED)

    def is_closing(self) -> bool:
        return self.state in (LaneState.CLOSING, LaneState.CLOSED)

    async def _run(self, predecessor: asyncio.Task[None] | None) -> None:
        """No lane dies quietly: what it cannot recover from ends the worker."""
        try:
            with no_stray_cancellation():
                await self._live(predecessor)
        except Exception as error:
            log.exception("lane %s-%d gives up", *self.tp)
            await self._services.fail(error)

    async def _live(self, predecessor: asyncio.Task[None] | None) -> None:
        if predecessor is not None:
            await asyncio.wait([predecessor])
        retry_s = FIRST_RETRY_S
        while not self.is_closing():
            try:
                with no_stray_cancellation():
                    await self._take_over()
                    while not self.is_closing():
                        await self._cycle()
                        retry_s = FIRST_RETRY_S
            except (FormatError, StateFull) as error:  # starting again would meet the same bytes, or as little room
                await self._recover(error)
                await self._services.fail(error)
                return
            except Exception as error:
                if isinstance(error, RecordsRefusedError) and (refusals := error.of_users):
                    for refused in refusals:
                        self._isolation.note(refused, self._services.clock.now())
                    await self._recover(error)
                    continue
                expected = isinstance(error, SchedulerError | KafkaError | OSError)
                log.warning("lane %s-%d starts again: %r", *self.tp, error, exc_info=None if expected else error)
                await self._recover(error)
                await self._pause(retry_s)
                is_outage = isinstance(error, BrokerError | LaneError | KafkaError)
                retry_s = min(2 * retry_s, OUTAGE_RETRY_S if is_outage else LAST_RETRY_S)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _take_over(self) -> None:
        """0. Fence, restore, and read on from the position that the restored state holds."""
        producer = LaneProducer(
            self._services.clients, f"{self.context.names.app_id}-{self.tp.topic}-{self.tp.partition}"
        )
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
        table, restored = await self.copy.bring_up()
        if self.is_closing():
            return
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
        self.intake.open(position, restored.backlog_end)
        self._wake.set()

    async def _recover(self, error: BaseException) -> None:
        """5. Drop what was begun; go on only as a member whose heartbeat is accepted.

        A zombie that went straight back to fencing would fence the partition's rightful owner.
        """
        if not self.is_closing():
            self._move(LaneState.FAILED)
        self.reason = str(error) or repr(error)
        self.counters.restarts += 1
        self.context.targets.forget_all()  # a topic may be gone, or have changed
        self.intake.close()
        await self._discard_producer()
        if isinstance(error, StateError | BrokerError):
            self.copy.close()
        if isinstance(error, StateCorrupt):
            log.warning("lane %s-%d builds its state anew", *self.tp)
            self.copy.destroy()
        if not self.is_closing():
            await self._services.confirm(self.tp)

    async def _discard_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    def _move(self, target: LaneState) -> None:
        self.state = self.state.to(target)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def _cycle(self) -> None:
        """Steps 1 to 4; or sleep until commands arrive or the timer ticks."""
        self._wake.clear()
        table, producer, targets, isolation = self.copy.table, self._producer, self.context.targets, self._isolation
        if table is None or producer is None:
            return  # closed meanwhile
        await targets.resolve(self.context.own_topics)
        self._check_own_topics()
        now = self._services.clock.now()
        overlay, batches = Overlay(table), RecordBatches(now, one_by_one=isolation.suspicious_topics)
        cycle = Cycle(self.context, overlay, batches, now)
        most = self._most(table)
        commands = self.intake.take(most)  # 1.
        read = len(commands)
        position = commands[-1].offset + 1 if commands else None
        commands.reverse()
        while commands:  # each is let go of while it is in the processor's cache
            cycle.take(commands.pop())  # 2.
        is_sweeping = cycle.sweep(min(most, MAX_SWEPT), MAX_FIRING_BYTES)  # 2.
        turns = self._turns(now, most)
        due = self._take_due(overlay, now, turns)  # 1.
        await targets.resolve({entry.schedule.target.topic for entry in due.entries} | cycle.reply_topics)
        is_isolating = isolation.is_under_way
        cycle.fire_due(due, isolation.refusals, turns, MAX_FIRING_BYTES, traced=is_isolating)  # 2.
        lost_results = cycle.answer(isolation.refusals)
        if position is None and not due.entries and not is_sweeping:
            if now - table.checkpoint.complete_at < TOUCH_MS:
                await self._rest(now, self._next_turn(due, now), table, producer)
                return
            cycle.moved_to(table.checkpoint.position)
        cycle.keep_sweeps()
        if position is not None:
            cycle.moved_to(position)
        offsets = {} if position is None else {self.tp: position}
        ends = await producer.commit(batches, self._services.group, offsets)  # 3.
        overlay.apply(changelog_offset=ends[self.context.changelog], complete_at=now)  # 4.
        self._observe_skew(now, batches)
        self._count(cycle, lost_results, now)
        self._next_turn(due, now)
        self._pace.observe(max(read, len(due.entries)), self._services.clock.now() - now)
        if is_isolating:
            isolation.clear(cycle.tried | {origin_key(result) for result in cycle.results})

    async def _rest(self, now: int, next_turn: int | None, table: ScheduleTable, producer: LaneProducer) -> None:
        """Sleep until there is something to fire; or, if that is in a moment, prepare it."""
        may_stage = self.intake.backlog_taken and not (self._isolation.is_under_way or self.context.shares.has_caps)
        staging = self.context.staging if may_stage else NO_STAGING
        instant = staging.instant(next_turn, now)
        if instant is None:
            self._timer.arm(staging.waking_time(next_turn))
        elif await self._stage(instant, table, producer):
            return
        else:
            self._timer.arm(next_turn)
        await self._wake.wait()

    async def _stage(self, instant: int, table: ScheduleTable, producer: LaneProducer) -> bool:
        """Steps 1 to 4 for what is due at an instant ahead, as if it were there; the commit waits for it.

        A command that arrives meanwhile and names one of these schedules comes first: then all of it is dropped.
        Returns False if it may not be prepared, since a topic would stamp the messages with a time before they are due.
        """
        overlay, batches = Overlay(table), RecordBatches(instant)
        cycle = Cycle(self.context, overlay, batches, instant)
        most = self._most(table)
        due = overlay.due(instant, most, MAX_FIRING_BYTES, self._fair)  # 1.
        topics = {entry.schedule.target.topic for entry in due.entries}
        await self.context.targets.resolve(topics)
        if any(self.context.targets[topic].stamps_appends for topic in topics):
            return False
        cycle.fire_due(due, {}, most, MAX_FIRING_BYTES)  # 2.
        staged = frozenset(identity_of(entry) for entry in due.entries)
        begun = self._services.clock.now()
        ends = await producer.commit_when(batches, lambda: self._comes(instant, staged))  # 3.
        if ends is None:
            self.counters.unstaged += 1
            return True
        overlay.apply(changelog_offset=ends[self.context.changelog], complete_at=instant)  # 4.
        self.next_due = due.next_due
        self._observe_skew(begun, batches)
        self._count(cycle, 0, instant)
        self.counters.staged += 1
        return True

    def _observe_skew(self, begun: int, batches: RecordBatches) -> None:
        if batches.appended_at is not None:
            self.skew.observe(begun, batches.appended_at, self._services.clock.now())

    async def _comes(self, instant: int, staged: frozenset[bytes]) -> bool:
        """Wait for an instant; return False as soon as something else has to be done before."""
        while not self.is_closing() and not self._must_come_first(staged):
            now = self._services.clock.now()
            if now >= instant:
                return True
            if not self.context.staging.is_near(instant, now):
                return False
            self._wake.clear()
            self._timer.arm(instant)
            await self._wake.wait()
        return False

    def _must_come_first(self, staged: frozenset[bytes]) -> bool:
        """Tell whether a waiting command may change what becomes of one of these schedules."""
        waiting = list(islice(self.intake.waiting(), MAX_LOOKED_AT + 1))
        return len(waiting) > MAX_LOOKED_AT or any(self.context.concerns(record, staged) for record in waiting)

    def _most(self, table: ScheduleTable) -> int:
        """Commands, and firings, that a cycle may hold: with several tenants one must not wait long for another."""
        if self._isolation.is_seeking:
            return MAX_ISOLATED
        return self._pace.limit if len(table.floors) > 1 else MOST

    def _turns(self, now: int, most: int) -> int:
        """Firings that the cap of all together leaves of a cycle."""
        self._throttle.share_among(self.context.targets[self.context.changelog[0]].partitions)
        total = self._throttle.total(now)
        return most if total is None else min(most, total)

    def _take_due(self, overlay: Overlay, now: int, turns: int) -> DueScan:
        if not self.intake.backlog_taken:  # a command that waited in the log may cancel what is due
            return DueScan([], None)
        throttle = self._throttle
        due = overlay.due(now, turns, MAX_FIRING_BYTES, self._fair, lambda tenant: throttle.allowed(tenant, now))
        if turns == throttle.total(now) and due.next_due is not None and due.next_due <= now:
            due = due._replace(next_due=None, held={**due.held, ALL: due.next_due})
        self.next_due = min(filter(None, (due.next_due, *due.held.values())), default=None)
        return due

    def _next_turn(self, due: DueScan, now: int) -> int | None:
        """Note who has to wait for a cap; return when (ms) there is something to fire, None: not before a command."""
        resumes = self._throttle.hold(due.held, now)
        return min(filter(None, (due.next_due, resumes)), default=None)

    def _check_own_topics(self) -> None:
        for topic in self.context.own_topics:
            if (refusal := self.context.targets[topic].refusal) is not None:
                raise BrokerError(f"{refusal}: run `light-scheduler topics create`")

    def _count(self, cycle: Cycle, lost_results: int, now: int) -> None:
        counters = self.counters
        counters.lost_results += lost_results
        counters.forwarded += cycle.forwarded
        counters.throttled += self._throttle.charge(cycle.delivered, now)
        counters.transactions += 1
        counters.outcomes.update(cycle.outcomes)
        counters.events.update(cycle.events)
        visible_at = self._services.clock.now()
        for entry in cycle.delivered:
            counters.lateness.observe(max(0, visible_at - entry.progress.due))
