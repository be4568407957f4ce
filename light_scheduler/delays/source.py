"""One partition of a rule's source, read at its own pace. Records that are not read yet stay in Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.connection import Address, connection_to
from light_scheduler.kafka.connection import stop_consumer
from light_scheduler.kafka.fetching import Command, fetched_commands
from light_scheduler.kafka.lasting_logins import keep_logged_in

FETCH_BYTES = 1 << 20
FETCH_MAX_WAIT_MS = 5_000
"""An idle partition costs one request in this time. A new record is returned at once."""
START_TIMEOUT_S = 30.0


class Source:
    """Committed records of a partition in order. `position` is the offset up to which all records have been
    returned."""

    def __init__(self, consumer: AIOKafkaConsumer, tp: TopicPartition, position: int) -> None:
        self._consumer = consumer
        self._tp = tp
        self.position = position

    @classmethod
    async def open(cls, connection: Address, tp: TopicPartition, offset: int) -> Self:
        """Return a source at an offset, or at the nearest one that the topic has. Raises aiokafka's errors."""
        consumer = AIOKafkaConsumer(
            **connection_to(connection).aiokafka(),
            isolation_level="read_committed",
            auto_offset_reset="none",  # records deleted by retention must not be skipped silently
            enable_auto_commit=False,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
        )
        keep_logged_in(consumer._client)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await consumer.start()
                consumer.assign([tp])
                begin = (await consumer.beginning_offsets([tp]))[tp]
                end = (await consumer.end_offsets([tp]))[tp]
                consumer.seek(tp, min(max(begin, offset), end))
                position = await consumer.position(tp)
        except BaseException:
            await stop_consumer(consumer)
            raise
        return cls(consumer, tp, position)

    async def read(self, timeout_s: float) -> Sequence[Command]:
        """Return the records that have been fetched, or that arrive within the timeout. Raises aiokafka's errors."""
        with self._consumer._subscription.fetch_context():
            fetched = await fetched_commands(
                self._consumer._fetcher, {self._tp}, frozenset({self._tp.topic}), timeout_s
            )
        self.position = await self._consumer.position(self._tp)
        return fetched.get(self._tp, ())

    @property
    def end(self) -> int | None:
        """The end of the committed records, as of the last fetch."""
        end: int | None = self._consumer.last_stable_offset(self._tp)
        return end

    async def close(self) -> None:
        await stop_consumer(self._consumer)
