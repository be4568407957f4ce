"""Reads fixed ranges of topics: committed records only, without a consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError

from .connection import broker_errors, stop_consumer
from .fetching import Command, fetched_before
from .lasting_logins import keep_logged_in

TIMEOUT_S = 10.0
"""Timeout for each answer of the broker."""

_PARTITION_BYTES = 256 << 10
_FETCH_BYTES = 4 << 20
"""Limits of a fetch for one partition and for all. A reader holds no more in memory, give or take a batch."""

_FETCH_WAIT_MS = 5

_AT_ONCE = 100
"""Records that are yielded at a time. Callers check the clock in between."""

_LOOK_EVERY_S = 0.1
"""How soon a reader notices that records to read were deleted. aiokafka does not report that."""


@asynccontextmanager
async def opened_log(connection: Address, topic: str) -> AsyncIterator[LogReader]:
    """Open a topic for one use. Raises BrokerError."""
    reader = await LogReader.of(connection, topic)
    try:
        yield reader
    finally:
        await reader.close()


class Span(NamedTuple):
    """Offsets of one partition, from `start` (inclusive) to `end` (exclusive)."""

    start: int
    end: int


class LogReader:
    """Reads spans of the topic that was opened last, one topic at a time. Its methods raise BrokerError."""

    def __init__(self, connection: Address) -> None:
        self._topic = ""
        self._consumer = AIOKafkaConsumer(
            **connection_to(connection).aiokafka(),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=_PARTITION_BYTES,
            fetch_max_bytes=_FETCH_BYTES,
            # Records after a span may be fetched too. They must not delay the next span.
            fetch_max_wait_ms=_FETCH_WAIT_MS,
        )
        keep_logged_in(self._consumer._client)

    @classmethod
    async def of(cls, connection: Address, topic: str) -> LogReader:
        """Connect and open a topic."""
        reader = cls(connection)
        try:
            with broker_errors(f"cannot read {topic}"):
                async with asyncio.timeout(TIMEOUT_S):
                    await reader._consumer.start()
            await reader.open(topic)
        except BaseException:
            await reader.close()
            raise
        return reader

    async def close(self) -> None:
        """Close all connections."""
        await stop_consumer(self._consumer)

    async def open(self, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        """Select a topic, and look up its partitions and their leaders again."""
        self._topic = topic
        client = self._consumer._client
        with broker_errors(f"cannot read {topic}"):
            async with asyncio.timeout(timeout_s):
                client.set_topics([topic])
                is_answered = await client.force_metadata_update()
        if not is_answered:
            raise BrokerError(f"cannot read {topic}: no broker answers")

    def release(self) -> None:
        """Stop fetching and drop fetched records."""
        self._consumer._subscription.assign_from_user([])

    async def extents(self, since: int) -> Mapping[int, Span]:
        """Return the span of each partition from the first record at `since` (UTC epoch ms) or later to the end."""
        places = self._partitions()
        with broker_errors(f"cannot read {self._topic}"):
            async with asyncio.timeout(TIMEOUT_S):
                starts, ends = await asyncio.gather(
                    self._consumer.offsets_for_times(dict.fromkeys(places, since)), self._consumer.end_offsets(places)
                )
        return {
            place.partition: Span(
                ends[place] if starts[place] is None else min(starts[place].offset, ends[place]), ends[place]
            )
            for place in places
        }

    async def read(
        self, spans: Mapping[int, Span], waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> AsyncIterator[Sequence[Command]]:
        """Yield the records of spans, some at a time, in order within each partition.

        `waiting` returns a context that is entered while waiting for the broker.
        """
        open_spans = {
            TopicPartition(self._topic, partition): span for partition, span in spans.items() if span.start < span.end
        }
        self._consumer.assign(list(open_spans))
        for place, span in open_spans.items():
            self._consumer.seek(place, span.start)
        while open_spans:
            with waiting():
                await self._wait_for_records(open_spans)
            for place, span in list(open_spans.items()):
                found = [record for record in await self._taken(place, span.end) if record.offset < span.end]
                # Transaction markers are offsets without records: only the position shows the end.
                if await self._position(place) >= span.end:
                    del open_spans[place]
                    self._consumer.pause(place)  # before other tasks run, so that nothing more is fetched
                for start in range(0, len(found), _AT_ONCE):
                    yield found[start : start + _AT_ONCE]

    async def _wait_for_records(self, spans: Mapping[TopicPartition, Span]) -> None:
        """Wait for the next fetched records of some partitions, or until a position reaches the end of its span."""
        fetcher = self._consumer._fetcher
        with broker_errors(f"cannot read {self._topic}"):
            async with asyncio.timeout(TIMEOUT_S):
                while fetcher._records.keys().isdisjoint(spans):
                    waiter = fetcher._create_fetch_waiter()
                    await asyncio.wait([waiter], timeout=_LOOK_EVERY_S)
                    if waiter.done():
                        waiter.result()
                        continue
                    waiter.cancel()
                    for place, span in spans.items():
                        if await self._consumer.position(place) >= span.end:
                            return

    async def _taken(self, place: TopicPartition, end: int) -> Sequence[Command]:
        """Take fetched records of a partition before an offset. The result is empty if there were only markers."""
        fetcher = self._consumer._fetcher
        if place not in fetcher._records:
            return []
        with broker_errors(f"cannot read {self._topic}"):
            return await fetched_before(fetcher, place, end)

    async def _position(self, place: TopicPartition) -> int:
        """Return the position in a partition. Asks the broker if the position is no longer in the log."""
        with broker_errors(f"cannot read {self._topic}"):
            async with asyncio.timeout(TIMEOUT_S):
                return int(await self._consumer.position(place))

    def _partitions(self) -> list[TopicPartition]:
        partitions = self._consumer.partitions_for_topic(self._topic)
        if not partitions:
            raise BrokerError(f"topic {self._topic} does not exist; `light-scheduler topics create` makes it")
        return [TopicPartition(self._topic, partition) for partition in sorted(partitions)]
