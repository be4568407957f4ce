"""A delay lane: forwards one partition of one rule's source.

    0. Become the owner of the transactional id `{app}-delays/{rule}/{source}/{partition}`, which fences every older
       owner. Only then read the rule's position, and read the source from there. If there is none, write one.
    1. Wait until the record at the head is due. The records behind it wait too, so that their order is kept.
    2. Forward the due records at the head, and the new position, in one transaction of bounded size. Commit it only
       if the position belongs to this source: a topic that was deleted and created again is read from its beginning.
    3. On any error drop producer, source and read records, check that the partition is still ours, start at 0.

A record that the target refuses is found by halving the transaction, and becomes a dead letter in its place. If the
target gives no reason, it may accept the record a little later, so the record is retried a few times first.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from aiokafka import TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.engine.delays import due_head, due_of
from light_scheduler.errors import BrokerError, CycleTimeout, InputInDoubt, LaneError
from light_scheduler.kafka.clients import LaneClients
from light_scheduler.kafka.fetching import Command
from light_scheduler.kafka.refusals import PASSING_REFUSALS, RecordsRefusedError
from light_scheduler.kafka.supervision import Supervision
from light_scheduler.kafka.target_lookup import TargetLookup
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.model import DelayRule, TopicNames
from light_scheduler.model.lane_state import LaneState
from light_scheduler.model.lateness import Lateness
from light_scheduler.wire.delays import position_key

from .batch_size import BatchSize
from .positions import Positions
from .source import Source
from .status import DelayLaneStatus
from .writes import Writes, has_time

MAX_BYTES = 4 << 20
"""Maximum bytes of one transaction; `batch_size` limits its number of records."""

READ_WAIT_S = 0.5
BLOCKED_WAIT_S = 1.0
FAR_AHEAD_MS = 60_000
LOOK_AT_SOURCE_S = 10.0
"""How often a waiting lane checks that its source is still the same topic."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DelayServices:
    """Services shared by the delay lanes of a worker.

    `confirm` sends a heartbeat and returns whether a partition is ours; `fail` ends the worker with an error.
    """

    connection: Address
    names: TopicNames
    clients: LaneClients
    longest_wait_ms: int
    clock: Clock
    targets: TargetLookup
    positions: Positions
    topic_ids: TopicIds
    confirm: Callable[[TopicPartition], Awaitable[bool]]
    fail: Callable[[BaseException], Awaitable[None]]


class DelayLane:
    """Forwards the records of a partition. `start` begins its task; `close` ends it."""

    def __init__(self, rule: DelayRule, tp: TopicPartition, services: DelayServices) -> None:
        self.rule = rule
        self.tp = tp
        self.state = LaneState.CREATED
        self._services = services
        self._reason: str | None = None
        self._blocked = False
        self._producer: TransactionalProducer | None = None
        self._source: Source | None = None
        self._writes = Writes(rule, tp, services.names, services.targets)
        self._read: deque[Command] = deque()
        self._position: int | None = None
        self._looked_at = -math.inf  # when the source's id was last checked (monotonic, s)
        self._size = BatchSize(services.clients.transaction_timeout_ms)
        self._unexplained = -1, 0  # the offset of a record that was refused without a reason, and how often
        self._forwarded = self._dead_letters = self._expired = self._transactions = self._restarts = 0
        self._lateness = Lateness()
        self._supervision = Supervision(
            f"delay {self}", log, fields={"topic": self.tp.topic, "partition": self.tp.partition}
        )

    def __str__(self) -> str:
        return f"{self.rule.name} of {self.tp.topic}-{self.tp.partition}"

    def start(self, predecessor: asyncio.Task[None] | None) -> None:
        """Begin after a predecessor that is still closing has ended."""
        self._supervision.start(self._live, self._failed, self._services.fail, predecessor)

    async def close(self) -> None:
        """Let an open transaction end within a time limit, then release everything."""
        self._move(LaneState.CLOSING)
        await self._supervision.end()
        await self._let_go()
        self._move(LaneState.CLOSED)

    def status(self) -> DelayLaneStatus:
        """Return the state of the lane."""
        end = None if self._source is None else self._source.end
        reached = None if self._source is None else self._read[0].offset if self._read else self._source.position
        return DelayLaneStatus(
            rule=self.rule.name,
            source=self.tp.topic,
            partition=self.tp.partition,
            state=self.state.value,
            reason=self._reason,
            waiting=self._blocked,
            position=self._position,
            lag=None if end is None or reached is None else max(0, end - reached),
            next_due=due_of(self._read[0].timestamp, self.rule.delay) if self._read else None,
            forwarded=self._forwarded,
            dead_letters=self._dead_letters,
            expired=self._expired,
            transactions=self._transactions,
            restarts=self._restarts,
            lateness=self._lateness,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        producer, source = await self._take_over()
        while not self._is_closing():
            await self._cycle(producer, source)
            self._supervision.went_well()

    async def _failed(self, error: Exception) -> bool:
        """3. Drop what was begun, and check that the partition is still ours. Then the lane starts again."""
        is_narrower = self._narrow_down(error)
        if not is_narrower:
            self._supervision.log_restart(error)
        await self._recover(error)
        if not is_narrower:
            least_s = BLOCKED_WAIT_S if isinstance(error, _RefusedError) else 0.0
            await self._supervision.pause(max(least_s, self._supervision.next_retry_s()))
        await self._supervision.confirm(lambda: self._services.confirm(self.tp))
        return True

    async def _take_over(self) -> tuple[TransactionalProducer, Source]:
        """0. Fence, then read the position, then open the source there."""
        services, rule, tp = self._services, self.rule, self.tp
        self._producer = producer = TransactionalProducer(
            services.clients,
            f"{services.names.app_id}-delays/{rule.name}/{tp.topic}/{tp.partition}",
        )
        await producer.fence()
        if not self._is_closing():
            self._move(LaneState.FENCED)
            self._move(LaneState.RESTORING)
        kept = await services.positions.read(position_key(rule.name, tp.topic, tp.partition))
        self._read_from(await services.topic_ids.now(tp.topic))
        topic_id = self._writes.topic_id
        offset = kept.offset if kept is not None and kept.topic_id == topic_id else 0
        if kept is not None and kept.topic_id != topic_id:
            log.warning("delay %s: the source topic was created again; reading it from its beginning", self)
        self._source = source = await Source.open(services.connection, tp, offset)
        if kept is None or kept.topic_id != topic_id:  # so that records deleted before they are due are counted
            batches = self._writes.moving(source.position, services.clock.now())
            await producer.commit(batches, services.names.app_id, {})
        if kept is not None and source.position > offset:
            self._expired += source.position - offset
            log.warning("delay %s: retention deleted offsets %d to %d unread", self, offset, source.position - 1)
        self._position = source.position
        if not self._is_closing():
            self._move(LaneState.RUNNING)
            self._reason = None
            log.info("delay %s runs: %s from offset %d", self, rule, source.position)
        return producer, source

    def _read_from(self, topic_id: str) -> None:
        if topic_id != self._writes.topic_id:  # earlier findings about offsets are of another log
            self._writes.culprit, self._unexplained = None, (-1, 0)
        self._writes.topic_id = topic_id

    async def _recover(self, error: BaseException) -> None:
        """3. Drop what was begun."""
        if not self._is_closing():
            self._move(LaneState.FAILED)
        self._reason = str(error) or repr(error)
        self._restarts += 1
        self._services.targets.forget_all()
        await self._let_go()

    async def _let_go(self) -> None:
        producer, self._producer = self._producer, None
        source, self._source = self._source, None
        self._read.clear()
        if source is not None:
            await source.close()
        if producer is not None:
            await producer.discard()

    def _is_closing(self) -> bool:
        return self.state in (LaneState.CLOSING, LaneState.CLOSED)

    def _move(self, target: LaneState) -> None:
        self.state = self.state.to(target)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def _cycle(self, producer: TransactionalProducer, source: Source) -> None:
        """Do steps 1 and 2, or wait."""
        if not self._read:
            self._read.extend(await source.read(READ_WAIT_S))
            if not self._read:
                return
        now = self._services.clock.now()
        head = self._read[0]
        wait_ms = due_of(head.timestamp, self.rule.delay) - now
        if wait_ms > 0:  # 1.
            self._warn_of_future_timestamp(head.timestamp - now)
            await self._look_at_source()
            await self._supervision.pause(min(wait_ms, self._services.longest_wait_ms) / 1_000)
            return
        if await self._is_blocked():
            await self._supervision.pause(BLOCKED_WAIT_S)
            return
        count = due_head(self._read, self.rule.delay, now, self._size.most, MAX_BYTES)
        records = list(islice(self._read, count))
        is_all = count == len(self._read)  # then it also skips the transaction markers behind the last record
        position = source.position if is_all else self._read[count].offset
        batches, dead_letters = self._writes.forwarding(records, position, now)
        try:
            await producer.commit(batches, self._services.names.app_id, {}, checks=[self._check_source])  # 2.
        except RecordsRefusedError as error:
            raise _RefusedError(count, head.offset, error) from error
        except CycleTimeout:
            self._size.failed(count)
            raise
        self._done(records, dead_letters, now)
        self._position = position

    async def _look_at_source(self) -> None:
        """Raise InputInDoubt if the source is known to be another topic: its records may be due before the waiting
        ones."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_AT_SOURCE_S:
            self._looked_at = now
            with suppress(BrokerError):
                await self._ask_for_source()

    async def _check_source(self) -> None:
        """Raise InputInDoubt unless the read records come from the topic that the position belongs to."""
        try:
            await self._ask_for_source()
        except BrokerError as error:
            raise InputInDoubt(f"cannot check that topic {self.tp.topic} was not replaced: {error}") from error

    async def _ask_for_source(self) -> None:
        """Raise InputInDoubt if the source is not the topic of the position, BrokerError if there is no answer."""
        if await self._services.topic_ids.fresh(self.tp.topic) != self._writes.topic_id:
            raise InputInDoubt(f"topic {self.tp.topic} was deleted and created again")

    async def _is_blocked(self) -> bool:
        """Return whether the target cannot be written to now. Logged once, until it can."""
        names, targets = self._services.names, self._services.targets
        topics = {self.rule.source, self.rule.target, names.dead_letters, names.delay_positions}
        await targets.resolve(topics)
        reasons = [reason for topic in sorted(topics) if (reason := self._why_blocked(topic)) is not None]
        if reasons and not self._blocked:
            log.warning("delay %s waits; nothing is lost: %s", self, "; ".join(reasons))
        if not reasons and self._blocked:
            log.info("delay %s continues", self)
        if reasons or self._blocked:
            self._reason = "; ".join(reasons) or None
        self._blocked = bool(reasons)
        return self._blocked

    def _why_blocked(self, topic: str) -> str | None:
        """Return why a topic cannot be written to. A topic that existed a moment ago is not refused yet, but
        unavailable."""
        targets = self._services.targets
        if (outage := targets.outages.of_topic(topic)) is not None:
            return f"topic {topic} is unavailable: {outage.reason}"
        return targets[topic].refusal

    def _warn_of_future_timestamp(self, ahead_ms: int) -> None:
        if ahead_ms <= FAR_AHEAD_MS:
            return
        reason = f"the record at the head has a timestamp {ahead_ms // 1_000} s ahead of the clock; others wait for it"
        if self._reason is None:
            log.warning("delay %s: %s", self, reason)
        self._reason = reason

    def _done(self, records: Sequence[Command], dead_letters: int, begun: int) -> None:
        now = self._services.clock.now()
        self._size.committed(now - begun)
        for record in records:
            self._read.popleft()
            if has_time(record):
                self._lateness.observe(max(0, now - due_of(record.timestamp, self.rule.delay)))
        self._transactions += 1
        self._forwarded += len(records) - dead_letters
        self._dead_letters += dead_letters
        self._reason = None

    def _narrow_down(self, error: BaseException) -> bool:
        """Record what a refusal says about individual records. Return whether it says anything."""
        if not isinstance(error, _RefusedError) or not error.is_of_records(self.rule.target):
            return False
        if error.count == 1:
            if error.may_pass and self._gives_time(error.first_offset):
                return False
            self._writes.culprit = error.first_offset, f"topic {self.rule.target} refused it: {error.cause!r}"
        self._size.failed(error.count)
        return True

    def _gives_time(self, offset: int) -> bool:
        """Return whether to retry a record that was refused without a reason."""
        known, times = self._unexplained
        self._unexplained = offset, times + 1 if offset == known else 1
        return self._unexplained[1] <= PASSING_REFUSALS


class _RefusedError(LaneError):
    """The broker refused the records of a transaction."""

    def __init__(self, count: int, first_offset: int, refused: RecordsRefusedError) -> None:
        super().__init__(str(refused))
        self.count = count
        self.first_offset = first_offset
        self.cause = refused.cause
        self.may_pass = refused.may_pass
        self._refused = refused

    def is_of_records(self, target: str) -> bool:
        """Whether the refusal is about the records, not about the target as a whole or one of our own topics."""
        return self._refused.topic == target and not self._refused.is_certain
