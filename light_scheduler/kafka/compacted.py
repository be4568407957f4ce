"""A compacted topic with one partition, which every worker reads completely: settings that change at run time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

from light_scheduler.connection import Address, Connection, connection_to
from light_scheduler.errors import BrokerError, ChangeUnconfirmed
from light_scheduler.wire.events import CHANGES_PARTITION

from .connection import broker_errors, ended, partitions_of, started_producer, stop_consumer, stop_producer
from .promptness import ANSWER_S, Promptness
from .quiet_producer import QuietProducer

WRITE_TIMEOUT_S = 10.0
OTHER_CHANGE_S = 2.0
"""How long to wait for the record of a concurrent change."""


Record = tuple[bytes, bytes | None]
"""Key and value. A value of None removes the key."""


class Change(NamedTuple):
    """Entries to store, at least one, and the history record of the change."""

    entries: Iterable[Record]
    event: tuple[bytes, bytes] | None = None


@dataclass
class _Commit:
    """Progress of the commit of a change. Once it has begun, the change may be stored."""

    last: Record | None = None  # the last record of the change
    offset: int = -1  # of `last`
    is_read: bool = False  # read back by `follow`
    is_begun: bool = False
    is_done: bool = False


class Entries(Protocol):
    """The interface of a `CompactedTopic` for readers and writers of its entries."""

    is_loaded: bool

    @property
    def entries(self) -> Mapping[bytes, bytes]: ...

    async def follow(self, changed: Callable[[], None]) -> None: ...

    async def write_all(self, records: Iterable[Record]) -> None: ...


class ChangingEntries(Entries, Protocol):
    """The interface of a `CompactedTopic` for writers whose new entries depend on the current ones."""

    async def change(self, make: Callable[[], Change]) -> None: ...


def change_id(topic: str) -> str:
    """Return the transactional id for changes of a compacted topic's entries."""
    return f"{topic}-change"


class CompactedTopic:
    """The last value of each key, in the order of the last writes, which is the same for every reader.

    `history` is the topic for records of changes. `promptness` knows which brokers hang.
    """

    def __init__(
        self, connection: Address, topic: str, history: str | None = None, promptness: Promptness | None = None
    ) -> None:
        self._connection = connection_to(connection)
        self._promptness = promptness or Promptness()
        self._place = TopicPartition(topic, 0)
        self._history = history
        self._entries: dict[bytes, bytes] = {}
        self._reached = 0
        self._made_again = asyncio.Event()
        self._moved = asyncio.Event()
        self.is_loaded = False
        self._ends: LogEnds | None = None
        self._sought: dict[int, _Commit] = {}  # by offset: running commits

    @property
    def entries(self) -> Mapping[bytes, bytes]:
        """The topic's entries at the last call of `changed`."""
        return self._entries

    async def follow(self, changed: Callable[[], None]) -> None:
        """Read until cancelled. Calls `changed` after the first complete read and each change. Raises KafkaError.

        After an error, call it again: it reads from the beginning. It also does so if the topic was recreated.
        """
        consumer = AIOKafkaConsumer(
            **self._promptness.arguments(self._connection),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._promptness.bound(consumer._client, ANSWER_S)
        try:
            await consumer.start()
            consumer.assign([self._place])
            async with LogEnds(self._connection, self._place, self._promptness) as self._ends:
                while True:
                    await self._read(consumer, changed)
        finally:
            self._ends = None
            await stop_consumer(consumer)

    async def catch_up(self) -> None:
        """Wait until everything written before the call was read. `follow` must be running. Raises BrokerError."""
        with broker_errors(f"reading {self._place.topic}"):
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                while self._ends is None or not self.is_loaded:
                    await self._next_move()
                reached = self._reached
                end = await self._ends.now()
                self._doubt(end, reached)
                while self._reached < end:
                    await self._next_move()

    async def _read(self, consumer: AIOKafkaConsumer, changed: Callable[[], None]) -> None:
        """Read from the beginning, until the topic is recreated."""
        self._made_again.clear()
        self._reached = 0
        await consumer.seek_to_beginning(self._place)
        end = (await consumer.end_offsets([self._place]))[self._place]
        entries: dict[bytes, bytes] = {}
        read_to = 0
        while True:
            position = await consumer.position(self._place)
            if position < read_to or self._made_again.is_set():
                return
            read_to = position
            if position >= end and (position > self._reached or not self.is_loaded or entries != self._entries):
                self._entries, self._reached, self.is_loaded = dict(entries), position, True
                self._moved.set()
                changed()
            for record in (await consumer.getmany(timeout_ms=1_000)).get(self._place, ()):
                if (sought := self._sought.get(record.offset)) is not None:
                    sought.is_read = (record.key, record.value) == sought.last
                entries.pop(record.key, None)
                if record.key is not None and record.value is not None:
                    entries[record.key] = record.value

    async def write(self, key: bytes, value: bytes | None) -> None:
        """Store a value, or remove it (None), and wait until it was read back. Raises BrokerError."""
        await self.write_all([(key, value)])

    async def write_all(self, records: Iterable[Record]) -> None:
        """Store the values of several keys, at least one, like `write`. If it fails, some may be stored."""
        with broker_errors(f"writing to {self._place.topic}"):
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                reached = self._reached
                producer = await started_producer(self._connection.aiokafka())
                try:
                    for key, value in records:
                        sent = await producer.send_and_wait(self._place.topic, value, key=key, partition=0)
                finally:
                    await stop_producer(producer)
                self._doubt(sent.offset, reached)
                while self._reached <= sent.offset:
                    await self._next_move()

    async def change(self, make: Callable[[], Change]) -> None:
        """Store the change that `make` returns for the current entries, and its history record, in one transaction.

        All changes use the same transactional id, and read to the end of the topic after fencing it. So a change knows
        all earlier ones, and a concurrent later change fences it: then `make` is called again. Raises BrokerError,
        ChangeUnconfirmed once the commit has begun, and errors of `make`.
        """
        commit = _Commit()
        try:
            with broker_errors(f"changing {self._place.topic}"):
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._written(make, commit)
                    while self._reached <= commit.offset:
                        await self._next_move()
        except BrokerError as error:
            if commit.is_begun:
                raise ChangeUnconfirmed(str(error), is_stored=commit.is_done) from error
            raise
        finally:
            self._sought.pop(commit.offset, None)

    async def _written(self, make: Callable[[], Change], commit: _Commit) -> None:
        """Store a change, retrying after concurrent changes."""
        has_failed = False
        while True:
            try:
                await self._written_alone(make, commit)
                return
            except KafkaError as error:
                is_fenced, was_begun = isinstance(error, ProducerFenced), commit.is_begun
                if was_begun and await self._is_stored(commit):
                    return
                if not is_fenced and (has_failed or not was_begun):
                    raise
                has_failed = has_failed or not is_fenced
                await self._other_change()

    async def _other_change(self) -> None:
        """Wait a while for the record of a concurrent change that has fenced this one."""
        with suppress(TimeoutError):
            # A random time, so that concurrent changes do not keep fencing each other.
            async with asyncio.timeout(OTHER_CHANGE_S * random.uniform(1, 2)):  # nosec B311
                await self._next_move()

    async def _written_alone(self, make: Callable[[], Change], commit: _Commit) -> None:
        """Try to store a change. Raises ProducerFenced if another change has begun."""
        async with self._changing() as producer:
            change = make()
            if change.event is not None:
                await self._look_up_history(producer)
            await producer.begin_transaction()
            try:
                self._sought.pop(commit.offset, None)
                commit.last, commit.offset = await self._write(producer, change)
                commit.is_read, self._sought[commit.offset] = False, commit
                commit.is_begun = True
                await producer.commit_transaction()
                commit.is_done = True
            except BaseException:
                await ended(producer.abort_transaction())  # an unavailable topic also blocks an abort
                raise

    async def _is_stored(self, commit: _Commit) -> bool:
        """Return whether a change is stored although its commit failed, and update `commit`.

        Kafka may have committed it in spite of the error. If another change begins at that moment, Kafka may answer
        UNKNOWN_SERVER_ERROR and not commit.
        """
        async with self._changing():
            commit.is_done = commit.is_begun = commit.is_read
            return commit.is_read

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[QuietProducer]:
        """Yield the producer of a change. All earlier changes have then ended and were read."""
        producer = QuietProducer(
            **self._connection.aiokafka(),
            transactional_id=change_id(self._place.topic),
            transaction_timeout_ms=int(WRITE_TIMEOUT_S * 1_000),
        )
        try:
            await producer.start()
            await self.catch_up()
            yield producer
        finally:
            await stop_producer(producer)

    async def _look_up_history(self, producer: AIOKafkaProducer) -> None:
        """Raise an error before anything is changed if the history topic is missing or not visible."""
        assert self._history is not None, "who tells of changes names the history"
        await partitions_of(producer, self._history, WRITE_TIMEOUT_S / 2)

    async def _write(self, producer: AIOKafkaProducer, change: Change) -> tuple[Record, int]:
        """Send the records of a change. Return the last entry and its offset."""
        for key, value in change.entries:
            sent = await producer.send_and_wait(self._place.topic, value, key=key, partition=0)
        if change.event is not None:
            told, event = change.event
            await producer.send_and_wait(self._history, event, key=told, partition=CHANGES_PARTITION)
        return (key, value), int(sent.offset)

    def _doubt(self, following: int, reached: int) -> None:
        """Read from the beginning if the log continues before the offset read: the topic was recreated."""
        if following < reached:
            self._reached = 0
            self._made_again.set()

    async def _next_move(self) -> None:
        self._moved.clear()
        await self._moved.wait()


class LogEnds:
    """Looks up the end of a partition, over its own connection, which is opened for the first request.

    A broker answers the requests of a connection in order, and a consumer's fetch can wait for half a second.
    """

    def __init__(self, connection: Connection, place: TopicPartition, promptness: Promptness | None = None) -> None:
        self._connection = connection
        self._place = place
        self._promptness = promptness or Promptness()
        self._consumer: AIOKafkaConsumer | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._is_closed = True
        async with self._connecting:
            if self._consumer is not None:
                await stop_consumer(self._consumer)

    async def now(self) -> int:
        """Return the offset after the last committed record. Raises KafkaError.

        A silent broker is disconnected, and asked again only if it still leads the partition.
        """
        consumer = await self._connected()
        return int((await consumer.end_offsets([self._place]))[self._place])

    async def _connected(self) -> AIOKafkaConsumer:
        async with self._connecting:
            if self._consumer is None:
                self._consumer = await self._connect()
        return self._consumer

    async def _connect(self) -> AIOKafkaConsumer:
        if self._is_closed:
            raise BrokerError(f"{self._place.topic} is no longer followed")
        consumer = AIOKafkaConsumer(
            **self._promptness.arguments(self._connection), isolation_level="read_committed", enable_auto_commit=False
        )
        self._promptness.bound(consumer._client, ANSWER_S, marks_silent=True)
        try:
            await consumer.start()
        except BaseException:
            await stop_consumer(consumer)
            raise
        return consumer


@asynccontextmanager
async def followed(
    follow: Callable[[Callable[[], None]], Coroutine[Any, Any, None]], topic: str, timeout_s: float
) -> AsyncIterator[None]:
    """Follow a compacted topic in the body, after the first complete read. Raises BrokerError on a timeout."""
    loaded = asyncio.Event()
    following = asyncio.create_task(follow(loaded.set))
    waiting = asyncio.create_task(loaded.wait())
    try:
        await asyncio.wait([following, waiting], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            with broker_errors(f"reading {topic}"):
                following.result()
        if not loaded.is_set():
            raise BrokerError(f"{topic} could not be read within {timeout_s:g} s")
        yield
    finally:
        for task in (following, waiting):
            task.cancel()
        await asyncio.wait([following, waiting])


async def stored_entries(connection: Address, topic: str, timeout: float) -> Mapping[bytes, bytes]:
    """Return the current entries of a compacted topic. `timeout` is in seconds. Raises BrokerError."""
    stored = CompactedTopic(connection, topic)
    async with followed(stored.follow, topic, timeout):
        return stored.entries
