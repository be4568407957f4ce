"""A lane's clients of the simulated Kafka: what aiokafka's have that lanes use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import ConcurrentTransactions, InvalidProducerEpoch, KafkaError, ProducerFenced
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import RecordMetadata

from light_scheduler.errors import LaneError
from light_scheduler.kafka.coordinator import KnownLog

from .faults import Killed
from .kafka import TRANSACTION_TIMEOUT_S
from .log import Log, Place, Record

if TYPE_CHECKING:
    from .node import Node

PATIENCE_S, RETRY_S = 1.0, 0.05
"""How long a transactional id that is asked for may be stuck before it is given up, as in `coordinator`."""


class _Client:
    """What a lane's producer and reader ask their client for."""

    cluster = ClusterMetadata()

    async def add_topic(self, topic: str) -> None:
        """All topics are followed."""

    async def set_topics(self, topics: set[str]) -> None:
        """The same."""

    async def close(self) -> None:
        """There are no connections."""


class _Manager:
    """What a lane asks aiokafka's manager of transactions for."""

    def __init__(self, add: Callable[[TopicPartition], None]) -> None:
        self.txn_partitions: set[TopicPartition] = set()
        self.refused: set[TopicPartition] = set()
        self.maybe_add_partition_to_txn = add

    def wait_for_transaction_end(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def partitions_to_add(self) -> set[TopicPartition]:
        return self.refused


class Producer:
    """A transactional producer, with the methods of aiokafka's that lanes use."""

    def __init__(self, lane: Clients, transactional_id: str) -> None:
        self.client = _Client()
        self._txn_manager = _Manager(self._add)
        self._lane = lane
        self._node = lane.node
        self._kafka = lane.node.world.kafka
        self._id = transactional_id
        self._epoch = -1
        self._unanswered: set[asyncio.Future[RecordMetadata]] = set()
        self._is_stopped = False

    async def start(self) -> None:
        while True:
            try:
                await self._request("0.fence", self._fence)
            except ConcurrentTransactions:
                await asyncio.sleep(RETRY_S)
            else:
                return

    def _fence(self) -> None:
        self._epoch = self._kafka.take_over(self._id)
        self._node.world.group.watch_fence(self._lane, self._id)
        self._lane.backlog_end.update({place: self._kafka.last_stable(place) for place in self._lane.watched})

    async def begin_transaction(self) -> None:
        self._txn_manager.txn_partitions.clear()
        await self._request(
            "3.begin", lambda: self._kafka.begin(self._id, self._epoch, dict(self._lane.backlog_end), self._lane)
        )

    async def send_batch(self, builder: Any, topic: str, *, partition: int) -> asyncio.Future[RecordMetadata]:
        place, me = (topic, partition), (self._id, self._epoch)
        world = self._node.world
        trouble = world.trouble_of(place)
        data = bytes(builder._build())
        records = list(MemoryRecords(data).next_batch())
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()

        def write() -> int:
            self._txn_manager.txn_partitions.add(TopicPartition(*place))
            if trouble is not None and trouble.error is not None:
                self._kafka.refuse(*me, trouble.error)
            return self._kafka.write(*me, place, records, len(data))

        def answer() -> None:
            try:
                first = write()
            except KafkaError as error:
                self._answer(future, error)
            else:
                self._answer(future, RecordMetadata(topic, partition, TopicPartition(*place), first, 0, 0, 0))

        seconds = world.away_for(place) if trouble is None else trouble.seconds(len(records), world.loop.time())
        if seconds > 0:
            with contextlib.suppress(KafkaError):
                self._kafka.add(*me, place)
            self._unanswered.add(future)
            asyncio.get_running_loop().call_later(seconds, answer)
            return future
        if self._kafka.is_stuck(self._id):
            self._unanswered.add(future)
            self._txn_manager.refused.add(TopicPartition(*place))
            self._node.world.spawn(self._when_free(answer))
            return future
        try:
            first = await self._request("3.send", write)
        except KafkaError as error:
            future.set_exception(error)
        else:
            future.set_result(RecordMetadata(topic, partition, TopicPartition(*place), first, 0, 0, 0))
        return future

    def _add(self, tp: TopicPartition) -> None:
        """Make a partition part of the transaction, as soon as the id is free."""

        def add() -> None:
            self._kafka.add(self._id, self._epoch, (tp.topic, tp.partition))
            self._txn_manager.txn_partitions.add(tp)

        if self._kafka.is_stuck(self._id):
            self._txn_manager.refused.add(tp)
            self._node.world.spawn(self._when_free(lambda: _unless_refused(add)))
        else:
            add()

    async def _when_free(self, answer: Callable[[], None]) -> None:
        """Try again until the coordinator takes a partition, or the producer is let go of."""
        try:
            while self._kafka.is_stuck(self._id):
                await asyncio.sleep(RETRY_S)
                await self._node.reach("3.send sent")
                if self._is_stopped:
                    return
        except (Killed, KafkaError):
            return
        self._txn_manager.refused.clear()
        answer()

    def _answer(self, future: asyncio.Future[RecordMetadata], answer: RecordMetadata | KafkaError) -> None:
        self._unanswered.discard(future)
        if not future.done():
            if isinstance(answer, KafkaError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def send_offsets_to_transaction(self, offsets: dict[TopicPartition, int], group: str) -> None:
        await self._request("3.offsets", lambda: self._kafka.add_offsets(self._id, self._epoch, offsets))

    async def commit_transaction(self) -> None:
        await self._request("3.commit", lambda: self._kafka.commit(self._id, self._epoch))

    async def abort_transaction(self) -> None:
        while self._unanswered:  # aiokafka ends no transaction of which batches are under way
            await asyncio.sleep(0.1)
        await self._request("5.abort", lambda: self._kafka.abort(self._id, self._epoch))

    def is_throttled(self, _: Place) -> bool:
        return False

    async def cut_off(self) -> None:
        self._is_stopped = True
        await self._node.reach("5.stop")

    async def _request(self, point: str, effect: Callable[[], Any]) -> Any:
        try:
            await self._node.reach(point + " sent")
        except asyncio.CancelledError:
            if self._node.world.random.random() < 0.5:  # it is under way, and arrives when its sender has given up
                delay = self._node.world.random.random()
                asyncio.get_running_loop().call_later(delay, _unless_refused, effect)
            raise
        try:
            answer = effect()
        except (ProducerFenced, InvalidProducerEpoch):
            self._node.world.group.watch_fenced(self._lane, self._id)
            raise
        await self._node.reach(point + " answered")
        return answer


def _unless_refused(effect: Callable[[], Any]) -> None:
    try:
        effect()
    except KafkaError:
        return


class Reader:
    """A read_committed consumer without a group, with the methods of aiokafka's that a restore uses."""

    visible = staticmethod(Log.committed)

    def __init__(self, lane: Clients) -> None:
        self._lane = lane
        self._node = lane.node
        self._kafka = lane.node.world.kafka
        self._at: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        await self._node.reach("0.connect")

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        await self._node.reach("0.ends")
        for tp in partitions:
            await asyncio.sleep(self._node.world.away_for((tp.topic, tp.partition)))
        ends = {(tp.topic, tp.partition): self._kafka.last_stable((tp.topic, tp.partition)) for tp in partitions}
        self._lane.backlog_end.update({place: ends[place] for place in self._lane.watched if place in ends})
        return {tp: ends[tp.topic, tp.partition] for tp in partitions}

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._at = dict.fromkeys(partitions, 0)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._at[tp] = offset

    async def log_end(self, tp: TopicPartition) -> int:
        await self._node.reach("0.ends")
        return self._kafka.log((tp.topic, tp.partition)).end

    def last_stable_offset(self, tp: TopicPartition) -> int:
        return self._kafka.last_stable((tp.topic, tp.partition))

    async def position(self, tp: TopicPartition) -> int:
        return self._at[tp]

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[Record]]:
        await self._node.reach("0.read")
        random = self._node.world.random
        if random.random() < 0.2:  # nothing came in time
            await asyncio.sleep(timeout_ms / 1_000)
            return {}
        fetched = {}
        for tp, at in self._at.items():
            log = self._kafka.log((tp.topic, tp.partition))
            reached = min(log.last_stable, at + random.choice((1, 3, 10, 50)))
            self._at[tp] = reached
            if records := self.visible(log, at, reached):
                fetched[tp] = records
        if not fetched:
            await self._kafka.more(timeout_ms / 1_000)
        return fetched

    async def stop(self) -> None:
        await self._node.reach("0.disconnect")


@dataclass(frozen=True, eq=False)
class Clients:
    """Makes a lane's clients; `watched` is the commands partition that the lane reads."""

    node: Node
    watched: list[Place]
    transaction_timeout_ms: int = int(TRANSACTION_TIMEOUT_S * 1_000)
    backlog_end: dict[Place, int] = field(default_factory=dict)
    """Where that ended when the lane took over, or was restored after that."""

    def producer(self, transactional_id: str) -> Producer:
        return Producer(self, transactional_id)

    def reader(self) -> Reader:
        return Reader(self)

    async def end(self, transactional_id: str, place: Place, *, commits: bool, changelog: KnownLog) -> None:
        if not await self.fence(transactional_id, changelog):
            raise LaneError(f"{transactional_id} is stuck")
        self.node.world.kafka.end(transactional_id, place, commits=commits)

    async def may_be_open(self, transactional_id: str, place: Place, end: int) -> bool:
        await self.node.reach("0.ends")
        opened = self.node.world.kafka.log(place).open.items()
        return any(each.transactional_id == transactional_id and begin < end for each, begin in opened)

    async def fence(self, transactional_id: str, changelog: KnownLog) -> bool:
        await self.node.reach("0.fence sent")
        asked_at = self.node.world.loop.time()
        while True:
            try:
                self.node.world.kafka.take_over(transactional_id)
            except ConcurrentTransactions:
                if self.node.world.loop.time() - asked_at > PATIENCE_S:
                    return False
                await asyncio.sleep(RETRY_S)
            else:
                break
        self.node.world.kafka.write_dropped(transactional_id, changelog.place)
        self.node.world.group.watch_fence(self, transactional_id)
        await self.node.reach("0.fence answered")
        return True
