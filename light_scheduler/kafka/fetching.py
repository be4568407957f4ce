"""Reads fetched records, with only the necessary fields: commands for lanes, state records for restores."""

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
"""Commands of a batch that are read at a time. The rest of the batch stays in memory, unpacked."""

MAX_AT_ONCE = 10_000
"""Commands that are taken from a fetch at a time, give or take a part."""

MAX_AT_ONCE_BYTES = 4 << 20
"""Maximum size of commands from compressed batches at a time, give or take a part: keys, values and headers."""

HEADER_BYTES = 100
"""Memory for a header, however few bytes it has in the batch."""


class Unreadable(list[tuple[str, bytes | None]]):
    """Replaces the headers of an unreadable record. Its header is unknown to every dialect, so it is rejected."""

    def __init__(self, reason: str) -> None:
        super().__init__([("schedule-unreadable", reason.encode())])
        self.reason = reason


UNREADABLE = Unreadable("a header's name, here or earlier in the sender's batch, is not UTF-8")


log = logging.getLogger(__name__)


class Command(msgspec.Struct, frozen=True, gc=False):
    """A command record. `timestamp` is UTC epoch ms."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class Commands(list[Command]):
    """Consecutive commands of a partition. `size` is the size in bytes of commands from compressed batches."""

    size = 0


class BatchReader:
    """The records of one fetch. Replaces aiokafka's own iterator.

    aiokafka checks each batch (checksum, aborted transactions, markers) and then iterates over single records. Its
    checks are kept, but `read` takes many records of a batch at a time.

    Objects that are put into aiokafka's object must not refer to it: such a cycle would keep a fetch in memory until
    the garbage collector runs, which is rare.
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

    aiokafka stops in a batch if a header's name is not UTF-8. The record at which it stopped is passed on without its
    content, and the position moves past it.

    Does not read batches that begin at offset `end` or later.
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
        """Return all commands, or only the first ones if there are many or large ones; then `is_done` is False."""
        commands = Commands()
        self._unpacked.size = 0
        self.is_done = True
        try:
            for part in self._records._records_iterator:
                commands += part
                if self._end is not None and self._records.next_fetch_offset >= self._end:
                    self._records._records_iterator.close()  # breaks a reference cycle with the fetched records
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
    """The records of a fetch as aiokafka's parser returns them, with `offset`, `key` and `value`."""

    def __init__(self, records: PartitionRecords) -> None:
        super().__init__(records, _read_state)


def _wanted(of: weakref.ref[PartitionRecords], _tp: TopicPartition, batch: Taken) -> Sequence[Any]:
    """Return the records from the position on: a fetch can begin within a batch."""
    records = of()
    assert records is not None, "they are read from it"
    position = records.next_fetch_offset
    if batch.records[0].offset >= position:
        return batch.records
    return [record for record in batch.records if record.offset >= position]


@dataclass
class _Unpacked:
    """Size in bytes of commands from compressed batches."""

    size: int = 0


def _read_commands(partition: int, unpacked: _Unpacked, batch: Any) -> Iterator[Taken]:
    records, is_last = chain(batch), False  # a batch can be iterated over only once
    while not is_last:
        commands: list[Command] = []
        unreadable = None
        try:
            for record in islice(records, PART):
                commands.append(  # one by one, to keep commands read before an error
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
    """Return one record for a whole batch, since its records cannot be separated."""
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
    """Consecutive records of a batch. To aiokafka, they look like one record with the last offset."""

    offset: int
    records: Sequence[Any]


class _Batches:
    """Replaces aiokafka's MemoryRecords. Its batches yield many records in one step."""

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
    """Return fetched records of some partitions, as `Command` for commands topics. Waits if there are none."""
    return await _fetched(fetcher, partitions, lambda tp: CommandReader if tp.topic in topics else None, timeout_s)


async def fetched_before(fetcher: Fetcher, place: TopicPartition, end: int) -> Sequence[Command]:
    """Return fetched records of a partition before an offset. May include some records after it."""
    reader = partial(CommandReader, end=end)
    fetched = await _fetched(fetcher, {place}, lambda tp: reader if tp == place else None, 0)
    return fetched.get(place, [])


class StateConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # it comes without types
    """A consumer whose `getmany` returns records as `StateReader`, and which can stop during an outage."""

    async def getmany(self, *partitions: TopicPartition, timeout_ms: int = 0) -> Mapping[TopicPartition, list[Any]]:
        """Return fetched records of some partitions (default: all). Waits if there are none."""
        with self._subscription.fetch_context():
            return await _fetched(self._fetcher, set(partitions), lambda _: StateReader, timeout_ms / 1_000)

    async def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions."""
        await self._have_metadata(partitions)
        begins: dict[TopicPartition, int] = await super().beginning_offsets(partitions)
        return begins

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offsets of partitions."""
        await self._have_metadata(partitions)
        ends: dict[TopicPartition, int] = await super().end_offsets(partitions)
        return ends

    async def _have_metadata(self, partitions: Collection[TopicPartition]) -> None:
        """Look up the leaders of partitions. Without that, aiokafka pauses for 0.1 s before it asks again.

        A lane that takes over asks about two topics, so that would be most of its takeover time.
        """
        await asyncio.gather(*(self._client.add_topic(topic) for topic in {tp.topic for tp in partitions}))

    async def log_end(self, tp: TopicPartition) -> int:
        """Return the end of a partition, including undecided records. Call this while nothing is assigned."""
        fetcher = self._fetcher
        level, fetcher._isolation_level = fetcher._isolation_level, READ_UNCOMMITTED
        try:
            return int((await self.end_offsets([tp]))[tp])
        finally:
            fetcher._isolation_level = level

    async def stop(self) -> None:
        """Close all connections."""
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
        waiter.result()  # raises authorization errors
    return {}


def _all_of(result: FetchResult) -> list[Any]:
    """Take the records of a fetch, as aiokafka's `getall`. A large fetch is taken in several calls."""
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
    """Take fetched records, as aiokafka's `fetched_records`, but without waiting for the end of a rebalance.

    Another member may own a partition by then. The lane is then fenced, so that its work has no effect.
    """
    drained: dict[TopicPartition, list[Any]] = {}
    for tp, result in list(fetcher._records.items()):
        if partitions and tp not in partitions:
            if not fetcher._subscriptions.is_assigned(tp):
                del fetcher._records[tp]
            continue
        is_error = not isinstance(result, FetchResult)
        if is_error and drained:
            break  # raised in the next call
        records = [] if is_error else _all_of(result)
        if is_error or not result.has_more():
            del fetcher._records[tp]
            fetcher._notify(fetcher._wait_consume_future)  # it may be fetched again
        if is_error:
            result.check_raise()
        if records:
            drained[tp] = records
    return drained
