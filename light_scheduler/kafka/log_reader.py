"""Reading parts of a topic that are over, committed records only, outside any consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError

from .connection import broker_errors, stop_consumer

TIMEOUT_S = 10.0
"""How long the broker may take for each answer."""

_FETCH_BYTES = 256 << 10
_MOST_RECORDS = 100
_FETCH_WAIT_MS = 20


class Span(NamedTuple):
    """Offsets of one partition, from `start` up to and without `end`."""

    start: int
    end: int


class LogReader:
    """Reads spans of one topic. An async context manager; raises BrokerError."""

    def __init__(self, connection: Address, topic: str) -> None:
        self._topic = topic
        self._consumer = AIOKafkaConsumer(
            **connection_to(connection).aiokafka(),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=_FETCH_BYTES,
            # What lies beyond a span may be fetched, too, and must not hold up the next one.
            fetch_max_wait_ms=_FETCH_WAIT_MS,
        )

    async def __aenter__(self) -> Self:
        try:
            with broker_errors(f"cannot read {self._topic}"):
                async with asyncio.timeout(TIMEOUT_S):
                    await self._consumer.start()
        except BaseException:
            await stop_consumer(self._consumer)
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await stop_consumer(self._consumer)

    async def extents(self, since: int) -> Mapping[int, Span]:
        """Return the span of each partition from the first record of an instant (UTC epoch ms) or later to the end."""
        with broker_errors(f"cannot read {self._topic}"):
            async with asyncio.timeout(TIMEOUT_S):
                places = await self._partitions()
                ends = await self._consumer.end_offsets(places)
                starts = await self._consumer.offsets_for_times(dict.fromkeys(places, since))
        return {
            place.partition: Span(
                ends[place] if starts[place] is None else min(starts[place].offset, ends[place]), ends[place]
            )
            for place in places
        }

    async def read(self, spans: Mapping[int, Span]) -> AsyncIterator[Sequence[ConsumerRecord[bytes, bytes]]]:
        """Yield the records of spans, some at a time, each partition's in order."""
        open_spans = {
            TopicPartition(self._topic, partition): span for partition, span in spans.items() if span.start < span.end
        }
        self._consumer.assign(list(open_spans))
        for place, span in open_spans.items():
            self._consumer.seek(place, span.start)
        while open_spans:
            fetched = await self._fetched(list(open_spans))
            for place, records in fetched.items():
                if found := [record for record in records if record.offset < open_spans[place].end]:
                    yield found
            for place in list(open_spans):
                # Markers of transactions are offsets without records: only the position tells the end.
                if await self._consumer.position(place) >= open_spans[place].end:
                    del open_spans[place]
                    self._consumer.pause(place)

    async def _fetched(
        self, places: list[TopicPartition]
    ) -> Mapping[TopicPartition, Sequence[ConsumerRecord[bytes, bytes]]]:
        """Return some records; none if the broker's next answer brings none. Raises BrokerError if it does not come."""
        with broker_errors(f"cannot read {self._topic}"):
            async with asyncio.timeout(TIMEOUT_S):
                positions = [await self._consumer.position(place) for place in places]
                while True:
                    fetched: Mapping[TopicPartition, Sequence[ConsumerRecord[bytes, bytes]]]
                    fetched = await self._consumer.getmany(*places, timeout_ms=100, max_records=_MOST_RECORDS)
                    if fetched or positions != [await self._consumer.position(place) for place in places]:
                        return fetched

    async def _partitions(self) -> list[TopicPartition]:
        await self._consumer._client.add_topic(self._topic)
        partitions = self._consumer.partitions_for_topic(self._topic)
        if not partitions:
            raise BrokerError(f"topic {self._topic} does not exist; `light-scheduler topics create` makes it")
        return [TopicPartition(self._topic, partition) for partition in sorted(partitions)]
