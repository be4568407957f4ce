"""Fetched records with only the fields that are read: commands for lanes, state records for restores."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, Fetcher, FetchResult, PartitionRecords

from light_scheduler.kafka.connection import end_fetches

from .decompression import BatchTooLargeError

PART = 500
"""Commands of a batch that are read at a time. What is left of it takes the bytes that it was unpacked to."""

MAX_AT_ONCE = 10_000
"""Commands that are taken of a fetch at a time, give or take a part."""

MAX_AT_ONCE_BYTES = 4 << 20
"""What the commands of compressed batches may take of them, give or take a part: keys, values and headers."""

HEADER_BYTES = 100
"""What a header takes in memory, however few bytes it has in a batch."""


class Unreadable(list[tuple[str, bytes | None]]):
    """Stands in for the headers of a record that cannot be read: no dialect knows the one in it, and rejects it."""

    def __init__(self, reason: str) -> None:
        super().__init__([("schedule-unreadable", reason.encode())])
        self.reason = reason


UNREADABLE = Unreadable("a header's name, here or earlier in the sender's batch, is not UTF-8")


log = logging.getLogger(__name__)


class Command(msgspec.Struct, frozen=True, gc=False):
    """A command record; `timestamp` is UTC epoch ms."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class Commands(list[Command]):
    """Consecutive commands of a partition. `size` is what those of compressed batches take, in bytes."""

    size = 0


class BatchReader:
    """The records of one fetch, in the place of aiokafka's own iterator over them.

    aiokafka checks batch by batch (checksum, aborted transactions, markers) and then goes from record to record. Its
    checks are kept; the records of a batch are taken many at a time, by `read`.

    Nothing that is put into aiokafka's object may lead back to it: what a fetch brought would stay in memory until the
    garbage collector comes by, and that is seldom.
    """

    def __init__(self, records: PartitionRecords, read: Callable[[Any], Iterator[Taken]]) -> None:
        records._records = _Batches(records._records, read)
        records._consumer_record = partial(_wanted, weakref.ref(records))
        self._records = records

    @property
    def next_fetch_offset(self) -> int:
        offset: int = self._records.next_fetch_offset
        return offset

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._records._records_iterator)


class CommandReader(BatchReader):
    """The records of a fetch as `Command`.

    aiokafka gives up on a batch in which a header's name is not UTF-8. The record it stopped at is passed on without
    its content, and the position moves past it.

    No batch is read that begins at the offset `end` or after it.
    """

    def __init__(self, records: PartitionRecords, end: int | None = None) -> None:
        self._end = end
        self._partition = records._tp.partition
        self._unpacked = _Unpacked()
        self.is_done = False
        super().__init__(records, partial(_read_commands, self._partition, self._unpacked))

    def __iter__(self) -> Iterator[Command]:
        return iter(self.take())

    def take(self) -> Commands:
        """Return all commands, or the first ones if they are many or large: `is_done` tells."""
        commands = Commands()
        self._unpacked.size = 0
        self.is_done = True
        try:
            for part in self._records._records_iterator:
                commands += part
                if self._end is not None and self._records.next_fetch_offset >= self._end:
                    self._records._records_iterator.close()  # else it and what was fetched keep each other in memory
                    break
                if len(commands) >= MAX_AT_ONCE or self._unpacked.size >= MAX_AT_ONCE_BYTES:
                    self.is_done = False
                    break
        except UnicodeDecodeError:
            offset = self._records.next_fetch_offset
            self._records.next_fetch_offset = offset + 1
            commands.append(Command(self._partition, offset, 0, None, None, UNREADABLE))
        commands.size = self._unpacked.size
        return commands


class StateReader(BatchReader):
    """The records of a fetch as aiokafka's parser makes them, with `offset`, `key` and `value`: nothing is added."""

    def __init__(self, records: PartitionRecords) -> None:
        super().__init__(records, _read_state)


def _wanted(of: weakref.ref[PartitionRecords], _tp: TopicPartition, batch: Taken) -> Sequence[Any]:
    """Return those of some records of a batch from the position on: a fetch may begin within a batch."""
    records = of()
    assert records is not None, "they are read from it"
    position = records.next_fetch_offset
    if batch.records[0].offset >= position:
        return batch.records
    return [record for record in batch.records if record.offset >= position]


@dataclass
class _Unpacked:
    """Bytes that commands of compressed batches take."""

    size: int = 0


def _read_commands(partition: int, unpacked: _Unpacked, batch: Any) -> Iterator[Taken]:
    records, is_last = chain(batch), False  # a batch itself can be iterated over only once
    while not is_last:
        commands: list[Command] = []
        unreadable = None
        try:
            for record in islice(records, PART):
                commands.append(  # one by one: what was read before an error is kept
                    Command(partition, record.offset, record.timestamp, record.key, record.value, record.headers)
                )
        except UnicodeDecodeError as error:
            unreadable = error
        except BatchTooLargeError as error:
            commands.append(_refused(partition, batch, error))
        is_last = len(commands) < PART
        if batch.compression_type:
            unpacked.size += _size(commands)
        if commands:
            yield Taken(commands[-1].offset, commands)
        if unreadable is not None:
            raise unreadable


def _refused(partition: int, batch: Any, error: BatchTooLargeError) -> Command:
    """Return a record that stands for all of a batch: what there is cannot be told apart."""
    first, last = batch.base_offset, batch.next_offset - 1
    reason = f"offsets {first} to {last}: {error}"
    log.error("the commands of a partition lack %s", reason)
    return Command(partition, last, batch.max_timestamp, None, None, Unreadable(reason))


def _size(commands: list[Command]) -> int:
    return sum([len(each.key or b"") + len(each.value or b"") + HEADER_BYTES * len(each.headers) for each in commands])


def _read_state(batch: Any) -> Iterator[Taken]:
    if records := list(batch):
        yield Taken(records[-1].offset, records)


class Taken(NamedTuple):
    """Consecutive records of a batch, as aiokafka sees them: one record, whose offset is the last one's."""

    offset: int
    records: Sequence[Any]


class _Batches:
    """Stands in for aiokafka's MemoryRecords: its batches yield many of their records in one step."""

    def __init__(self, records: Any, read: Callable[[Any], Iterator[Taken]]) -> None:
        self.has_next = records.has_next
        self._next_batch = records.next_batch
        self._read = read

    def next_batch(self) -> _Batch:
        return _Batch(self._next_batch(), self._read)


class _Batch:
    def __init__(self, batch: Any, read: Callable[[Any], Iterator[Taken]]) -> None:
        self._batch = batch
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Taken]:
        return self._read(self._batch)


async def fetched_commands(
    fetcher: Fetcher, partitions: set[TopicPartition], topics: frozenset[str], timeout_s: float
) -> Mapping[TopicPartition, list[Any]]:
    """Return what has been fetched of some partitions, for commands topics as `Command`; wait for it if need be."""
    return await _fetched(fetcher, partitions, lambda tp: CommandReader if tp.topic in topics else None, timeout_s)


async def fetched_before(fetcher: Fetcher, place: TopicPartition, end: int) -> Sequence[Command]:
    """Return what has been fetched of a partition before an offset; some records after it may be among that."""
    reader = partial(CommandReader, end=end)
    fetched = await _fetched(fetcher, {place}, lambda tp: reader if tp == place else None, 0)
    return fetched.get(place, [])


class StateConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # it comes without types
    """A consumer whose `getmany` makes no more of records than `StateReader` does, and that stops in an outage too."""

    async def getmany(self, *partitions: TopicPartition, timeout_ms: int = 0) -> Mapping[TopicPartition, list[Any]]:
        """Return the records that were fetched of some partitions (default: all); wait for them if need be."""
        with self._subscription.fetch_context():
            return await _fetched(self._fetcher, set(partitions), lambda _: StateReader, timeout_ms / 1_000)

    async def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions begin."""
        await self._have_metadata(partitions)
        begins: dict[TopicPartition, int] = await super().beginning_offsets(partitions)
        return begins

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions end, as far as they are decided."""
        await self._have_metadata(partitions)
        ends: dict[TopicPartition, int] = await super().end_offsets(partitions)
        return ends

    async def _have_metadata(self, partitions: Collection[TopicPartition]) -> None:
        """Look up who leads partitions: where aiokafka does not know that, it pauses for 0.1 s before it asks again.

        A lane that takes over asks about two topics, so that would be most of its takeover.
        """
        await asyncio.gather(*(self._client.add_topic(topic) for topic in {tp.topic for tp in partitions}))

    async def log_end(self, tp: TopicPartition) -> int:
        """Return where a partition ends, with what is not decided yet; to be called while nothing is assigned."""
        fetcher = self._fetcher
        level, fetcher._isolation_level = fetcher._isolation_level, READ_UNCOMMITTED
        try:
            return int((await self.end_offsets([tp]))[tp])
        finally:
            fetcher._isolation_level = level

    async def stop(self) -> None:
        """Let go of every connection."""
        await end_fetches(self)
        await super().stop()


async def _fetched(
    fetcher: Fetcher,
    partitions: set[TopicPartition],
    reader_of: Callable[[TopicPartition], Callable[[PartitionRecords], BatchReader] | None],
    timeout_s: float,
) -> Mapping[TopicPartition, list[Any]]:
    for may_wait in (True, False):
        for tp, result in fetcher._records.items():
            reader = reader_of(tp)
            if reader is not None and isinstance(result, FetchResult):
                records = result._partition_records
                if isinstance(records, PartitionRecords):
                    result._partition_records = reader(records)
        drained = _drained(fetcher, partitions)
        if drained or not may_wait:
            return drained
        waiter = fetcher._create_fetch_waiter()
        await asyncio.wait([waiter], timeout=timeout_s)
        if not waiter.done():
            waiter.cancel()
            return {}
        waiter.result()  # an authorization error is raised here
    return {}


def _all_of(result: FetchResult) -> list[Any]:
    """Take what there is of a fetch, as aiokafka's `getall` does; of a large one some, and the rest next time."""
    reader = result._partition_records
    if not isinstance(reader, CommandReader):
        taken: list[Any] = result.getall()
        return taken
    if not result.check_assignment(result._topic_partition):
        return []
    commands = reader.take()
    result._update_position()
    if reader.is_done:
        result._partition_records = None
    return commands


def _drained(fetcher: Fetcher, partitions: set[TopicPartition]) -> Mapping[TopicPartition, list[Any]]:
    """Take what has been fetched, as aiokafka's `fetched_records` does, but without waiting for a rebalance to end.

    Another member may have a partition by then; a lane is fenced in that case, and what it reads comes to nothing.
    """
    drained: dict[TopicPartition, list[Any]] = {}
    for tp, result in list(fetcher._records.items()):
        if partitions and tp not in partitions:
            if not fetcher._subscriptions.is_assigned(tp):
                del fetcher._records[tp]
            continue
        is_error = not isinstance(result, FetchResult)
        if is_error and drained:
            break  # it is raised next time
        records = [] if is_error else _all_of(result)
        if is_error or not result.has_more():
            del fetcher._records[tp]
            fetcher._notify(fetcher._wait_consume_future)  # it may be fetched again
        if is_error:
            result.check_raise()
        if records:
            drained[tp] = records
    return drained
