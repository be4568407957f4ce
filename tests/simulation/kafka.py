"""A Kafka of one process: logs, transactions and what can be seen of them.

It is as unhelpful as the protocol allows. A commit is decided when its request arrives, but its markers are written
later; until then read_committed readers and the group's offsets see what was before. Some partitions may get theirs
seconds after the others; until all have theirs the transactional id is stuck. A changelog may get none, as if it had no
leader just then (KAFKA-20734): then the producer fails too. Partitions without a leader get none either, and the next
marker of the same id there decides for all that is open. Markers take offsets, and so do aborted records. Compaction
leaves holes. A request whose sender gave up may still arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    ConcurrentTransactions,
    InvalidTxnState,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)

from .log import INTERNAL, MAX_BATCH_BYTES, POISON, Log, Place, State, Transaction
from .names import CHANGELOGS

if TYPE_CHECKING:
    from .clients import Clients

TRANSACTION_TIMEOUT_S = 10.0
STUCK_S = 5.0
"""How long markers may be late. It is shorter than a session: who wakes from a freeze finds its ids free, or fenced."""


class Kafka:
    """The cluster. `changed` is called when read_committed readers can see more."""

    def __init__(
        self, random: Random, now_ms: Callable[[], int], *, late_markers: float = 0.0, dropped_markers: float = 0.0
    ) -> None:
        self.random = random
        self._late_markers = late_markers
        self._dropped_markers = dropped_markers
        self.now_ms = now_ms
        self.logs: dict[Place, Log] = {}
        self.commits: list[Transaction] = []
        self.group_offsets: dict[TopicPartition, int] = {}
        self.changed: Callable[[], None] = lambda: None
        self.away_for: Callable[[Place], float] = lambda _: 0.0
        """For how long (s) a partition takes nothing, not even markers."""
        self.known_away: Callable[[str], frozenset[int]] = lambda _: frozenset()
        """Of which partitions of a topic the metadata tell that they take nothing."""
        self.drops_from: float | None = None
        """From when on (s) markers for these are not written at all."""
        self.max_bytes: dict[str, int] = {}
        """What partitions of a topic take at once, unless as much as of others."""
        self._gone: set[Place] = set()
        self._awaiting: list[asyncio.Future[None]] = []
        self._epochs: dict[str, int] = {}
        self._current: dict[str, Transaction] = {}
        self._unmarked: dict[str, Transaction] = {}
        self._stuck: dict[str, Transaction] = {}
        self._dropped: dict[str, Transaction] = {}

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
        """Return whether requests for an id are answered with CONCURRENT_TRANSACTIONS: markers of it are missing."""
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

    def write_dropped(self, transactional_id: str, changelog: Place) -> None:
        """Write the marker that a changelog lacks of an id's last transaction."""
        transaction = self._dropped.pop(transactional_id, None)
        if transaction is not None:
            self.log(changelog).mark(transaction)
            self._tell()

    def begin(
        self, transactional_id: str, epoch: int, backlog_end: dict[Place, int], owner: Clients | None = None
    ) -> None:
        """Begin a transaction; of an id that is stuck, when it is free."""
        self._check(transactional_id, epoch)
        self._write_markers(transactional_id)  # the broker would answer CONCURRENT_TRANSACTIONS until they are
        if transactional_id in self._dropped:
            raise KafkaConnectionError
        transaction = Transaction(transactional_id, epoch, backlog_end, owner=owner)
        self._current[transactional_id] = transaction
        asyncio.get_running_loop().call_later(TRANSACTION_TIMEOUT_S, self._time_out, transaction)

    def write(self, transactional_id: str, epoch: int, place: Place, records: list[Any], size: int) -> int:
        """Append a batch of so many bytes; return its first offset."""
        transaction = self._open_transaction(transactional_id, epoch)
        if place[0] in INTERNAL:
            transaction.broken = InvalidTxnState()
            raise transaction.broken
        if place in self._gone:
            raise UnknownTopicOrPartitionError
        if size > self.max_bytes.get(place[0], MAX_BATCH_BYTES):
            raise MessageSizeTooLargeError
        if any(record.value == POISON for record in records) and place[0] == "targets":
            raise MessageSizeTooLargeError
        log = self.log(place)
        first = log.end
        transaction.places.add(place)
        for record in records:
            transaction.records.append(log.append(place, transaction, record, record.timestamp))
        return first

    def add(self, transactional_id: str, epoch: int, place: Place) -> None:
        """Make a partition part of a transaction, which the coordinator can do whether that takes anything or not."""
        self._open_transaction(transactional_id, epoch).places.add(place)

    def refuse(self, transactional_id: str, epoch: int, error: type[KafkaError]) -> None:
        """Answer with an error in place of taking a batch; one of the transaction breaks all of it."""
        transaction = self._open_transaction(transactional_id, epoch)
        if error is InvalidTxnState:
            transaction.broken = error()
        raise error()

    def add_offsets(self, transactional_id: str, epoch: int, offsets: dict[TopicPartition, int]) -> None:
        self._open_transaction(transactional_id, epoch).group_offsets.update(offsets)

    def end(self, transactional_id: str, place: Place, *, commits: bool) -> None:
        """End what an id has open in a partition, with an empty transaction of whoever has just taken it over."""
        epoch = self.epoch(transactional_id)
        self.begin(transactional_id, epoch, {})
        self.add(transactional_id, epoch, place)
        (self.commit if commits else self.abort)(transactional_id, epoch)

    def commit(self, transactional_id: str, epoch: int) -> None:
        transaction = self._open_transaction(transactional_id, epoch)
        del self._current[transactional_id]
        transaction.state = State.COMMITTED
        transaction.decided_at = asyncio.get_running_loop().time()
        self.commits.append(transaction)
        self._unmarked[transactional_id] = transaction
        self._draw_markers(transaction)
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

    def create_again(self, topic: str, before: int, partitions: int) -> None:
        """Delete a topic and create another one with its name. What is open in the former one can only be aborted."""
        for number in range(max(before, partitions)):
            self.logs[topic, number] = Log()
            self.group_offsets.pop(TopicPartition(topic, number), None)
        self._gone |= {(topic, number) for number in range(partitions, before)}
        self._gone -= {(topic, number) for number in range(partitions)}
        for transaction in self._current.values():
            if any(place[0] == topic for place in transaction.places):
                transaction.broken = InvalidTxnState()
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
        self._draw_markers(transaction)
        self._mark(transaction)

    def _write_markers(self, transactional_id: str) -> None:
        transaction = self._unmarked.pop(transactional_id, None)
        if transaction is not None:
            self._mark(transaction)
            self.group_offsets.update(transaction.group_offsets)

    def _draw_markers(self, transaction: Transaction) -> None:
        if self._dropped_markers and self.random.random() < self._dropped_markers:
            transaction.dropped = {place for place in transaction.places if place[0] in CHANGELOGS}
            if transaction.dropped:
                self._dropped[transaction.transactional_id] = transaction
        if self._late_markers and self.random.random() < self._late_markers:
            transaction.late = {place for place in sorted(transaction.places) if self.random.random() < 0.5}
            if transaction.late:
                self._stuck[transaction.transactional_id] = transaction
                seconds = STUCK_S * self.random.random()
                asyncio.get_running_loop().call_later(seconds, self._free, transaction)
        if away := {place for place in transaction.places if self.away_for(place) > 0} - self._drop(transaction):
            transaction.late |= away
            self._stuck[transaction.transactional_id] = transaction
            self._free_later(transaction, away)

    def _mark(self, transaction: Transaction) -> None:
        for place in transaction.places - transaction.late - transaction.dropped:
            self.log(place).mark(transaction)
        self._tell()

    def _free(self, transaction: Transaction) -> None:
        transaction.late = {place for place in transaction.late if self.away_for(place) > 0} - self._drop(transaction)
        if transaction.late:
            self._free_later(transaction, transaction.late)
        else:
            self._stuck.pop(transaction.transactional_id, None)
        self._mark(transaction)

    def _free_later(self, transaction: Transaction, away: set[Place]) -> None:
        seconds = max(map(self.away_for, away))
        if self.drops_from is not None:
            seconds = self.drops_from - asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(seconds + 0.001, self._free, transaction)

    def _drop(self, transaction: Transaction) -> set[Place]:
        """Drop the markers for partitions that have no leader, and return these."""
        if self.drops_from is None:
            return set()
        dropped = {
            place for place in transaction.places if self.away_for(place) and place[1] in self.known_away(place[0])
        }
        transaction.dropped |= dropped
        return dropped
