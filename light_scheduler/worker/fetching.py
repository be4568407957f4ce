"""Fetched records as commands: what a lane needs of a record, made without what it does not need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords

from light_scheduler.model import Headers

UNREADABLE: Headers = [("schedule-unreadable", b"a header's name, here or earlier in the sender's batch, is not UTF-8")]
"""Stands in for the headers of a record that cannot be read; no dialect knows it, so the record is rejected by name."""


class Command(msgspec.Struct, frozen=True, gc=False):
    """A command record; `timestamp` is UTC epoch ms."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class CommandReader:
    """The records of one fetch, in the place of aiokafka's own iterator over them.

    aiokafka checks batch by batch (checksum, aborted transactions, markers) and then goes from record to record. Its
    checks are kept; the records of a batch are taken at once.

    aiokafka gives up on a batch in which a header's name is not UTF-8. The record it stopped at is passed on without
    its content, and the position moves past it.
    """

    def __init__(self, records: PartitionRecords) -> None:
        records._records = _Batches(records._records, records._tp.partition)
        records._consumer_record = self._wanted
        self._records = records

    @property
    def next_fetch_offset(self) -> int:
        offset: int = self._records.next_fetch_offset
        return offset

    def __iter__(self) -> Iterator[Command]:
        commands: list[Command] = []
        try:
            for of_a_batch in self._records._records_iterator:
                commands += of_a_batch
        except UnicodeDecodeError:
            offset = self._records.next_fetch_offset
            self._records.next_fetch_offset = offset + 1
            commands.append(Command(self._records._tp.partition, offset, 0, None, None, UNREADABLE))
        return iter(commands)

    def _wanted(self, _tp: TopicPartition, batch: _Taken) -> list[Command]:
        """Return the commands of a batch from the position on: a fetch may begin within a batch."""
        position = self.next_fetch_offset
        if batch.commands[0].offset >= position:
            return batch.commands
        return [command for command in batch.commands if command.offset >= position]


class _Batches:
    """Stands in for aiokafka's MemoryRecords: its batches yield all of their records in one step."""

    def __init__(self, records: Any, partition: int) -> None:
        self.has_next = records.has_next
        self._next_batch = records.next_batch
        self._partition = partition

    def next_batch(self) -> _Batch:
        return _Batch(self._next_batch(), self._partition)


class _Batch:
    def __init__(self, batch: Any, partition: int) -> None:
        self._batch = batch
        self._partition = partition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[_Taken]:
        partition = self._partition
        commands: list[Command] = []
        unreadable = None
        try:
            for record in self._batch:
                commands.append(  # one by one: what was read before an error is kept
                    Command(partition, record.offset, record.timestamp, record.key, record.value, record.headers)
                )
        except UnicodeDecodeError as error:
            unreadable = error
        if commands:
            yield _Taken(commands[-1].offset, commands)
        if unreadable is not None:
            raise unreadable


class _Taken(NamedTuple):
    """The commands of a batch, as aiokafka sees them: one record, whose offset is the last one's."""

    offset: int
    commands: list[Command]


async def fetched_commands(
    fetcher: Fetcher, partitions: set[TopicPartition], topics: frozenset[str], timeout_s: float
) -> Mapping[TopicPartition, list[Any]]:
    """Return what has been fetched of some partitions, for commands topics as `Command`; wait for it if need be."""
    for may_wait in (True, False):
        for tp, result in fetcher._records.items():
            if tp.topic in topics and isinstance(result, FetchResult):
                records = result._partition_records
                if isinstance(records, PartitionRecords):
                    result._partition_records = CommandReader(records)
        drained: Mapping[TopicPartition, list[Any]] = await fetcher.fetched_records(partitions, timeout=0)
        if drained or not may_wait:
            return drained
        waiter = fetcher._create_fetch_waiter()
        await asyncio.wait([waiter], timeout=timeout_s)
        if not waiter.done():
            waiter.cancel()
            return {}
        waiter.result()  # an authorization error is raised here
    return {}
