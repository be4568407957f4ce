"""Faust as the control plane: its consumer handles membership, assignment and fetching; lanes get commands in batches.

Overrides of Faust's aiokafka driver:

    Consumer.on_partitions_assigned  fences new lanes before Faust or anything else continues with an assignment
    Consumer._drain_messages         passes on whole batches of a partition; the same loop fetches and seeks, and it
                                     continues for lanes during a rebalance
    Consumer.on_stop                 closes the lanes before the worker leaves the group
    Consumer.verify_event_path       does nothing: Faust's livelock detector does not know lanes
    thread._create_worker_consumer   reads committed records only; gives up on brokers that do not answer
    thread.seek_to_committed         leaves out lanes' partitions: they are read from the position in the lane's state
    thread._fetch_records            converts fetched records to commands, and records offsets missing from the log
    thread.on_start                  gives up on a coordinator that does not answer heartbeats
    thread.on_thread_stop            can stop during an outage
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from light_scheduler.kafka.connection import end_fetches
from light_scheduler.kafka.fetching import Commands, fetched_commands
from light_scheduler.kafka.heartbeats import bound_heartbeats, check_coordination, is_member
from light_scheduler.kafka.promptness import ANSWER_S, Promptness
from light_scheduler.lanes.assigned_lanes import Lanes
from light_scheduler.lanes.lane import Lane
from light_scheduler.wire import CommandRecord

if TYPE_CHECKING:
    from faust.assignor.partition_assignor import PartitionAssignor

FETCH_TIMEOUT_S = 0.1
IDLE_TIMEOUT_S = 1.0
"""How long the fetcher waits for records before it checks for other work; and how long when all lanes are idle, since
other work then ends the wait (`LaneConsumer.look_around`).
"""

FETCH_MAX_WAIT_MS = 100
"""How long a fetch may wait in the broker. A partition whose records were just taken is fetched again only after the
broker has answered the running fetch, so this limits the delay of a command. A shorter time makes idle workers busier.
"""

LOST_BATCH_S = 1.0
"""A batch that has not reached its lane after this time was lost: an agent that fails loses its event. A rebalance
empties the agents' queues, so batches are then lost immediately.
"""

log = logging.getLogger(__name__)


class CommandBatch(NamedTuple):
    """One event of an agent: consecutive commands of one partition, fetched from offset `first`.

    `size` is the size in bytes of commands from compressed batches.
    """

    lane: Lane
    epoch: int
    first: int
    records: list[CommandRecord]
    size: int = 0


@dataclass
class _Feed:
    """The offset up to which a lane's commands were handed on, and the assignment in which reading continues."""

    assignment: object = None
    fetched_to: int = 0
    handed_at: float = 0.0


class _Thread(driver.AIOKafkaConsumerThread):
    _may_wait = True
    out_of_range: Mapping[TopicPartition, int] = {}
    """Requested offsets that the log does not have."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = FETCH_MAX_WAIT_MS
        consumer._auto_offset_reset = "none"  # do not silently skip offsets that the log does not have
        promptness = cast(LaneTransport, self.transport).promptness
        promptness.bound(consumer._client, ANSWER_S, is_member=True, marks_silent=True)
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        bound_heartbeats(self._ensure_consumer())

    async def _fetch_records(
        self,
        consumer: Any,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,  # noqa: ARG002 - all fetched records are taken
    ) -> Any:
        if consumer._closed or consumer._fetcher._closed:
            raise ConsumerStoppedError
        topics = cast(LaneTransport, self.transport).command_topics
        timeout, self._may_wait = timeout if self._may_wait else None, True
        try:
            with consumer._fetcher._subscriptions.fetch_context():
                return await fetched_commands(consumer._fetcher, active_partitions, topics, timeout or 0)
        except OffsetOutOfRangeError as error:
            self.out_of_range = {**self.out_of_range, **error.args[0]}
        except NoOffsetForPartitionError:
            log.debug("a lane does not know yet where to read")
        return {}

    async def on_thread_stop(self) -> None:
        if self._consumer is not None:
            await end_fetches(self._consumer)
        await super().on_thread_stop()

    def end_wait(self) -> None:
        """Make the waiting fetch, or otherwise the next one, return immediately. Callable from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits
            self.thread_loop.call_soon_threadsafe(self._end_wait)

    def _end_wait(self) -> None:
        if self._consumer is not None:
            fetcher = self._consumer._fetcher
            self._may_wait = bool(fetcher._fetch_waiters)
            for waiter in list(fetcher._fetch_waiters):
                fetcher._notify(waiter)

    @property
    def assigned(self) -> Any:
        """The current assignment with its positions, a new object for each assignment; None if there is none."""
        subscription = self._ensure_consumer()._subscription.subscription
        return None if subscription is None else subscription.assignment

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek in partitions that do not belong to lanes."""
        topics = cast(LaneTransport, self.transport).command_topics
        consumer = self._ensure_consumer()
        others = [tp for tp in consumer.assignment() if tp.topic not in topics]
        return await self.call_thread(consumer.seek_to_committed, *others) if others else {}

    def join_again(self) -> None:
        """Make the group assign its partitions again. Callable from any thread."""
        coordinator = self._ensure_consumer()._coordinator
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.thread_loop.call_soon_threadsafe(coordinator.request_rejoin)

    def check_coordination(self) -> None:
        """Raise the error that ended the consumer's group membership, if any."""
        check_coordination(self._ensure_consumer())

    async def is_member(self) -> bool:
        """Send a heartbeat. Return whether the coordinator accepted it for our generation."""
        try:
            return await is_member(self._ensure_consumer())
        except KafkaError:  # an answer that aiokafka cannot handle: its own heartbeat will deal with it
            return False


class LaneConsumer(driver.Consumer):
    """Faust's consumer, feeding lanes."""

    lanes: Lanes
    _thread: _Thread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lanes = cast(LaneTransport, self.transport).lanes
        self.lanes.highwater = self.highwater_of
        self._command_topics = cast(LaneTransport, self.transport).command_topics
        self._keeps_standbys = cast(LaneTransport, self.transport).keeps_standbys
        self._feeds: dict[TopicPartition, _Feed] = {}
        self._is_wanted = asyncio.Event()

    def _new_consumer_thread(self) -> _Thread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self.look_around()
        standbys = cast("PartitionAssignor", self.app.assignor).assigned_standbys() if self._keeps_standbys else set()
        await self.lanes.assign(self._command_partitions(assigned), self._command_partitions(standbys))
        await super().on_partitions_assigned(assigned, generation_id)

    def _command_partitions(self, partitions: set[TP]) -> set[TopicPartition]:
        return {TopicPartition(tp.topic, tp.partition) for tp in partitions if tp.topic in self._command_topics}

    def look_around(self) -> None:
        """Serve the lanes now: a lane needs commands, or must read from another position."""
        self._is_wanted.set()
        self._thread.end_wait()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: lanes monitor themselves."""

    async def on_stop(self) -> None:
        await self.lanes.close()
        await super().on_stop()

    def highwater_of(self, tp: TopicPartition) -> int | None:
        """Return the end of a commands partition at the last fetch; None if unknown."""
        try:
            end: int | None = self._thread._ensure_consumer().highwater(tp)
        except (IllegalStateError, AssertionError):
            return None
        return end

    def join_again(self) -> None:
        """Make the group assign its partitions again."""
        self._thread.join_again()

    async def confirm(self, tp: TopicPartition) -> bool:
        """Send a heartbeat. Return whether it was accepted and the partition is still ours afterwards."""
        if self.app.rebalancing or not await self._thread.call_thread(self._thread.is_member):
            return False
        return not self.app.rebalancing and self.lanes.get(tp) is not None

    async def _drain_messages(self, fetcher: Any) -> None:
        """Fetch and hand on until the worker ends."""
        try:
            await self._fetch_on(fetcher)
        except asyncio.CancelledError:
            if not self.app.should_stop:
                raise  # during a rebalance, Faust then restarts the fetcher

    async def _fetch_on(self, fetcher: Any) -> None:
        """Fetch and hand on: for lanes at any time, for Faust's other topics only between rebalances.

        A rebalance lasts as long as a dead member may return. Meanwhile, remaining lanes continue to read.
        """
        while not (self.should_stop or fetcher.should_stop):
            self._thread.check_coordination()
            assignment = self._thread.assigned
            await self._seek_lanes(assignment)
            epochs = {
                lane.tp: lane.intake.epoch
                for lane in self.lanes
                if lane.intake.is_open and not lane.intake.needs_seek and not lane.intake.is_full
            }
            active = self._to_fetch(epochs)
            if not active:
                self._is_wanted.clear()
                await self.wait_first(self._is_wanted.wait(), timeout=FETCH_TIMEOUT_S)
                continue
            timeout = IDLE_TIMEOUT_S if self._all_rest() else FETCH_TIMEOUT_S
            try:
                fetched = await self._getmany(active, timeout)
            except asyncio.CancelledError:
                self._thread.end_wait()  # otherwise the abandoned fetch would consume the next records
                raise
            self._note_losses(epochs, assignment)
            for tp, records in fetched.items():
                is_stale = self._thread.assigned is not assignment
                if tp.topic in self._command_topics:
                    await self._hand_on(tp, cast(Commands, records), epochs.get(tp), is_stale)
                elif self.flow_active and not is_stale:
                    for record in records:
                        await self.callback(self._to_message(tp, record))
            self._note_positions(epochs, assignment)

    def _to_fetch(self, epochs: Mapping[TopicPartition, int]) -> set[TP]:
        if not self.flow_active:
            return {cast(TP, tp) for tp in epochs}
        return {tp for tp in self._get_active_partitions() if tp.topic not in self._command_topics or tp in epochs}

    def _all_rest(self) -> bool:
        """Return whether every lane has received everything fetched for it and waits for more."""
        return all(
            lane.intake.is_open
            and lane.intake.backlog_taken
            and not lane.intake.needs_seek
            and self._feeds[lane.tp].fetched_to == lane.intake.next_offset
            for lane in self.lanes
        )

    async def _seek_lanes(self, assignment: Any) -> None:
        """Seek to the lanes' positions after an assignment, for a new lane, or after a lost batch."""
        for lane in self.lanes:
            feed, intake = self._feeds.setdefault(lane.tp, _Feed()), lane.intake
            intake.needs_seek |= feed.assignment is not assignment
            if intake.is_open and feed.fetched_to != intake.next_offset:
                under_way_s = time.monotonic() - feed.handed_at
                intake.needs_seek |= not self.flow_active or under_way_s > LOST_BATCH_S
            if intake.is_open and intake.needs_seek:
                offset = intake.next_offset
                try:
                    await self.seek_wait({cast(TP, lane.tp): offset})
                except (TimeoutError, IllegalStateError) as error:
                    log.info("cannot seek in %s-%d yet: %r", *lane.tp, error)
                    continue
                feed.assignment, feed.fetched_to, intake.needs_seek = assignment, offset, intake.next_offset != offset

    async def _hand_on(self, tp: TP, records: Commands, epoch: int | None, is_stale: bool) -> None:
        lane = self.lanes.get(tp)
        if lane is None:
            return  # the next lane of this partition seeks before it reads
        if is_stale or epoch != lane.intake.epoch:
            lane.intake.needs_seek = True
            return
        feed, last = self._feeds[lane.tp], records[-1]
        plain: list[Any] = records[:]  # a plain list: item access is slower on a subclass
        batch = CommandBatch(lane, epoch, feed.fetched_to, plain, records.size)
        feed.fetched_to, feed.handed_at = last.offset + 1, time.monotonic()
        if not self.flow_active:  # agents are paused during the rebalance
            lane.intake.offer(batch.epoch, batch.first, batch.records, batch.size)
            return
        await self.callback(
            ConsumerMessage(
                tp.topic,
                tp.partition,
                last.offset,
                last.timestamp / 1_000,
                0,
                [],
                None,
                batch,  # type: ignore[arg-type]  # Faust passes it on unchanged: the topic's serializer is raw
                None,
                0,
                0,
                tp,
                generation_id=self.app.consumer_generation_id,
            )
        )

    def _note_losses(self, epochs: Mapping[TopicPartition, int], assignment: Any) -> None:
        """Tell lanes about offsets missing from the log, if they still need them."""
        lost, self._thread.out_of_range = self._thread.out_of_range, {}
        for tp, offset in lost.items():
            lane = self.lanes.get(tp)
            if lane is None:
                continue
            intake, is_wanted = lane.intake, assignment.state_value(tp)._position == offset
            if is_wanted and epochs.get(lane.tp) == intake.epoch and not intake.needs_seek:
                intake.lose(offset)
            else:
                intake.needs_seek = True

    def _note_positions(self, epochs: Mapping[TopicPartition, int], assignment: Any) -> None:
        for lane in self.lanes:
            intake = lane.intake
            if epochs.get(lane.tp) != intake.epoch or intake.needs_seek:
                continue
            if self._feeds[lane.tp].fetched_to == intake.next_offset:  # no batch is on its way to the lane
                position = assignment.state_value(lane.tp)._position
                if position is not None:  # otherwise it is being looked up
                    intake.reached(position)


class LaneTransport(driver.Transport):
    """Faust's transport with the consumer that feeds lanes."""

    Consumer = LaneConsumer
    lanes: Lanes
    command_topics: frozenset[str]
    promptness: Promptness
    keeps_standbys: bool
