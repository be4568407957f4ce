"""Fetched records as commands: what a lane needs of a record, made without what it does not need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

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
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Any


class CommandReader:
    """The records of one fetch, in the place of aiokafka's own iterator over them.

    aiokafka gives up on a batch in which a header's name is not UTF-8. The record it stopped at is passed on without
    its content, and the position moves past it.
    """

    def __init__(self, records: PartitionRecords) -> None:
        records._consumer_record = _command
        self._records = records

    @property
    def next_fetch_offset(self) -> int:
        offset: int = self._records.next_fetch_offset
        return offset

    def __iter__(self) -> Iterator[Command]:
        try:
            yield from self._records._records_iterator
        except UnicodeDecodeError:
            offset = self._records.next_fetch_offset
            self._records.next_fetch_offset = offset + 1
            yield Command(self._records._tp.partition, offset, 0, 0, None, None, UNREADABLE)


def _command(tp: TopicPartition, record: Any) -> Command:
    return Command(
        tp.partition,
        record.offset,
        record.timestamp,
        record.timestamp_type,
        record.key,
        record.value,
        record.headers,
    )


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
