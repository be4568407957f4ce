"""A Kafka of one process: logs, transactions and what can be seen of them.

It is as unhelpful as the protocol allows. A commit is decided when its request arrives, but its markers are written
later; until then read_committed readers and the group's offsets see what was before. Some partitions may get theirs
seconds after the others; until all have theirs the transactional id is stuck. Markers take offsets, and so do aborted
records. Compaction leaves holes. A request whose sender gave up may still arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
)
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import RecordMetadata

if TYPE_CHECKING:
    from .node import Node

POISON = b"poison"
"""A value that the broker refuses, although nothing told so beforehand."""

MAX_BATCH_BYTES = 1_048_588
"""What a partition takes at once; more of it is refused."""

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that no producer may write to: the coordinator refuses to make them part of a transaction."""

TRANSACTION_TIMEOUT_S = 10.0
STUCK_S = 5.0
"""How long markers may be late. It is shorter than a session: who wakes from a freeze finds its ids free, or fenced."""
PATIENCE_S, RETRY_S = 1.0, 0.05
"""How long a transactional id that is asked for may be stuck before it is given up, as in `coordinator`."""

Place = tuple[str, int]
"""(topic, partition)."""


class Killed(BaseException):
    """The process is gone; nothing of it runs on. Not an Exception: nobody handles it."""


class Record(NamedTuple):
    """A record in a log, with the names that aiokafka's records have; `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class State(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(eq=False)
class Transaction:
    """One transaction. `decided_at` (s) is when its outcome was, `backlog_end` what its owner found on taking over."""

    transactional_id: str
    epoch: int
    backlog_end: dict[Place, int]
    state: State = State.OPEN
    decided_at: float = 0.0
    places: set[Place] = field(default_factory=set)
    late: set[Place] = field(default_factory=set)
    """Where its marker is not written before the id is free again."""
    records: list[Record] = field(default_factory=list)
    group_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    broken: KafkaError | None = None
    """What its producer fails with from now on, whatever it asks for; the error does not say what it is about."""
    owner: Clients | None = None
    """Whose it is: each lane has clients of its own."""

    @property
    def clock_ahead(self) -> int:
        """By how much (ms) its owner's clock is ahead of the brokers'."""
        return 0 if self.owner is None else self.owner.node.clock_ahead


class Log:
    """One partition. `end` is its high watermark."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[Transaction | None, Record]] = {}  # neither markers nor what was compacted
        self.end = 0
        self.open: dict[Transaction, int] = {}  # transaction -> its first offset here
        self._cleaned_at: dict[int, int] = {}  # tombstone -> when what it supersedes was removed (ms)

    @property
    def last_stable(self) -> int:
        return min(self.open.values(), default=self.end)

    def append(self, place: Place, transaction: Transaction | None, record: Any, timestamp: int) -> Record:
        if transaction is not None:
            self.open.setdefault(transaction, self.end)
        kept = Record(*place, self.end, timestamp, record.key, record.value, list(record.headers))
        self.entries[self.end] = (transaction, kept)
        self.end += 1
        return kept

    def mark(self, transaction: Transaction) -> None:
        """Write the marker that ends a transaction."""
        if self.open.pop(transaction, None) is not None:
            self.end += 1

    def committed(self, start: int, end: int) -> list[Record]:
        """Return what a read_committed reader sees between two offsets."""
        visible = []
        for offset in range(start, min(end, self.last_stable)):
            entry = self.entries.get(offset)
            if entry is not None and (entry[0] is None or entry[0].state is State.COMMITTED):
                visible.append(entry[1])
        return visible

    def compact(self, now: int, tombstones_kept: int) -> None:
        """Keep the last committed record of each key, at an instant (ms).

        Tombstones are kept for so long (ms) after what they supersede was removed: who has read that can read them.
        """
        stable = self.last_stable
        last = {record.key: record.offset for record in self.committed(0, stable)}
        for offset in [offset for offset in self.entries if offset < stable]:
            _, record = self.entries[offset]
            superseded = last.get(record.key) != offset
            if superseded or (
                record.value is None and now - self._cleaned_at.setdefault(offset, now) > tombstones_kept
            ):
                del self.entries[offset]


class Kafka:
    """The cluster. `changed` is called when read_committed readers can see more."""

    def __init__(self, random: Random, now_ms: Callable[[], int], *, late_markers: float = 0.0) -> None:
        self.random = random
        self._late_markers = late_markers
        self.now_ms = now_ms
        self.logs: dict[Place, Log] = {}
        self.commits: list[Transaction] = []
        self.group_offsets: dict[TopicPartition, int] = {}
        self.changed: Callable[[], None] = lambda: None
        self._awaiting: list[asyncio.Future[None]] = []
        self._epochs: dict[str, int] = {}
        self._current: dict[str, Transaction] = {}
        self._unmarked: dict[str, Transaction] = {}
        self._stuck: dict[str, Transaction] = {}

    def log(self, place: Place) -> Log:
        log = self.logs.get(place)
        if log is None:
            log = self.logs[place] = Log()
        return log

    def last_stable(self, place: Place) -> int:
        return self.log(place).last_stable

    def epoch(self, transactional_id: str) -> int:
        return self._epochs.get(transactional_id, 0)

    def is_stuck(self, transactional_id: str) -> bool:
        """Tell whether requests for an id are answered with CONCURRENT_TRANSACTIONS: markers of it are missing."""
        return transactional_id in self._stuck

    def take_over(self, transactional_id: str) -> int:
        """InitProducerId: abort the former owner's transaction, and fence it when all markers are written."""
        open_transaction = self._current.pop(transactional_id, None)
        if open_transaction is not None:
            self._abort(open_transaction)
        self._write_markers(transactional_id)
        if self.is_stuck(transactional_id):
            raise ConcurrentTransactions
        self._epochs[transactional_id] = self.epoch(transactional_id) + 1
        return self._epochs[transactional_id]

    def begin(
        self, transactional_id: str, epoch: int, backlog_end: dict[Place, int], owner: Clients | None = None
    ) -> None:
        """Begin a transaction; of an id that is stuck, when it is free."""
        self._check(transactional_id, epoch)
        self._write_markers(transactional_id)  # the broker would answer CONCURRENT_TRANSACTIONS until they are
        transaction = Transaction(transactional_id, epoch, backlog_end, owner=owner)
        self._current[transactional_id] = transaction
        asyncio.get_running_loop().call_later(TRANSACTION_TIMEOUT_S, self._time_out, transaction)

    def write(self, transactional_id: str, epoch: int, place: Place, records: list[Any], size: int) -> int:
        """Append a batch of so many bytes; return its first offset."""
        transaction = self._open_transaction(transactional_id, epoch)
        if place[0] in INTERNAL:
            transaction.broken = InvalidTxnState()
            raise transaction.broken
        if size > MAX_BATCH_BYTES:
            raise MessageSizeTooLargeError
        if any(record.value == POISON for record in records) and place[0] == "targets":
            raise MessageSizeTooLargeError
        log = self.log(place)
        first = log.end
        transaction.places.add(place)
        for record in records:
            transaction.records.append(log.append(place, transaction, record, record.timestamp))
        return first

    def refuse(self, transactional_id: str, epoch: int, error: type[KafkaError]) -> None:
        """Answer with an error in place of taking a batch; one of the transaction breaks all of it."""
        transaction = self._open_transaction(transactional_id, epoch)
        if error is InvalidTxnState:
            transaction.broken = error()
        raise error()

    def add_offsets(self, transactional_id: str, epoch: int, offsets: dict[TopicPartition, int]) -> None:
        self._open_transaction(transactional_id, epoch).group_offsets.update(offsets)

    def commit(self, transactional_id: str, epoch: int) -> None:
        transaction = self._open_transaction(transactional_id, epoch)
        del self._current[transactional_id]
        transaction.state = State.COMMITTED
        transaction.decided_at = asyncio.get_running_loop().time()
        self.commits.append(transaction)
        self._unmarked[transactional_id] = transaction
        self._draw_late(transaction)
        if self.random.random() < 0.4:
            asyncio.get_running_loop().call_later(self.random.random() * 0.2, self._write_markers, transactional_id)
        else:
            self._write_markers(transactional_id)

    def abort(self, transactional_id: str, epoch: int) -> None:
        transaction = self._open_transaction(transactional_id, epoch, is_abort=True)
        del self._current[transactional_id]
        self._abort(transaction)

    def send(self, place: Place, records: list[Any], *, aborted: bool | None = None) -> None:
        """Write as an outside producer does: plainly, or (`aborted` given) in a transaction of its own."""
        log, now_ms = self.log(place), self.now_ms()
        transaction = None if aborted is None else Transaction("outside", 0, {})
        for record in records:
            log.append(place, transaction, record, now_ms)
        if transaction is not None:
            transaction.state = State.ABORTED if aborted else State.COMMITTED
            log.mark(transaction)
        self._tell()

    async def more(self, seconds: float) -> None:
        """Return when readers can see more, or after a time (s)."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._awaiting.append(future)
        timer = loop.call_later(seconds, self._wake, [future])
        try:
            await future
        finally:
            timer.cancel()

    def _tell(self) -> None:
        self.changed()
        if self._awaiting:
            awaiting, self._awaiting = self._awaiting, []
            self._wake(awaiting)

    @staticmethod
    def _wake(awaiting: list[asyncio.Future[None]]) -> None:
        for future in awaiting:
            if not future.done():
                future.set_result(None)

    def _open_transaction(self, transactional_id: str, epoch: int, *, is_abort: bool = False) -> Transaction:
        self._check(transactional_id, epoch)
        transaction = self._current.get(transactional_id)
        if transaction is None:
            raise InvalidTxnState
        if transaction.broken is not None and not is_abort:
            raise transaction.broken
        return transaction

    def _check(self, transactional_id: str, epoch: int) -> None:
        if epoch != self.epoch(transactional_id):
            raise ProducerFenced

    def _time_out(self, transaction: Transaction) -> None:
        if self._current.get(transaction.transactional_id) is transaction:
            del self._current[transaction.transactional_id]
            self._epochs[transaction.transactional_id] += 1
            self._abort(transaction)

    def _abort(self, transaction: Transaction) -> None:
        transaction.state = State.ABORTED
        transaction.decided_at = asyncio.get_running_loop().time()
        self._draw_late(transaction)
        self._mark(transaction)

    def _write_markers(self, transactional_id: str) -> None:
        transaction = self._unmarked.pop(transactional_id, None)
        if transaction is not None:
            self._mark(transaction)
            self.group_offsets.update(transaction.group_offsets)

    def _draw_late(self, transaction: Transaction) -> None:
        if self._late_markers and self.random.random() < self._late_markers:
            transaction.late = {place for place in sorted(transaction.places) if self.random.random() < 0.5}
            if transaction.late:
                self._stuck[transaction.transactional_id] = transaction
                seconds = STUCK_S * self.random.random()
                asyncio.get_running_loop().call_later(seconds, self._free, transaction)

    def _mark(self, transaction: Transaction) -> None:
        for place in transaction.places - transaction.late:
            self.log(place).mark(transaction)
        self._tell()

    def _free(self, transaction: Transaction) -> None:
        transaction.late = set()
        del self._stuck[transaction.transactional_id]
        self._mark(transaction)


class _Client:
    """What a lane's producer and reader ask their client for."""

    cluster = ClusterMetadata()

    async def add_topic(self, topic: str) -> None:
        """All topics are followed."""

    async def close(self) -> None:
        """There are no connections."""


class _Manager:
    """What a lane asks aiokafka's manager of transactions for."""

    def __init__(self) -> None:
        self.txn_partitions: set[TopicPartition] = set()
        self.refused: set[TopicPartition] = set()

    def maybe_add_partition_to_txn(self, tp: TopicPartition) -> None:
        self.txn_partitions.add(tp)

    def partitions_to_add(self) -> set[TopicPartition]:
        return self.refused


class Producer:
    """A transactional producer, with the methods of aiokafka's that lanes use."""

    def __init__(self, lane: Clients, transactional_id: str) -> None:
        self.client = _Client()
        self._txn_manager = _Manager()
        self._lane = lane
        self._node = lane.node
        self._kafka = lane.node.world.kafka
        self._id = transactional_id
        self._epoch = -1
        self._backlog_end: dict[Place, int] = {}
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
        self._backlog_end = {place: self._kafka.last_stable(place) for place in self._lane.watched}

    async def begin_transaction(self) -> None:
        await self._request("3.begin", lambda: self._kafka.begin(self._id, self._epoch, self._backlog_end, self._lane))

    async def send_batch(self, builder: Any, topic: str, *, partition: int) -> asyncio.Future[RecordMetadata]:
        place, me = (topic, partition), (self._id, self._epoch)
        trouble = self._node.world.trouble_of(place)
        data = bytes(builder._build())
        records = list(MemoryRecords(data).next_batch())
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()

        def write() -> int:
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

        if trouble is not None and (seconds := trouble.seconds(len(records), self._node.world.loop.time())) > 0:
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

    def __init__(self, node: Node) -> None:
        self._node = node
        self._kafka = node.world.kafka
        self._at: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        await self._node.reach("0.connect")

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        await self._node.reach("0.ends")
        return {tp: self._kafka.last_stable((tp.topic, tp.partition)) for tp in partitions}

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

    def producer(self, transactional_id: str) -> Producer:
        return Producer(self, transactional_id)

    def reader(self) -> Reader:
        return Reader(self.node)

    async def fence(self, transactional_id: str) -> bool:
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
        self.node.world.group.watch_fence(self, transactional_id)
        await self.node.reach("0.fence answered")
        return True
