"""Creates and configures the Kafka clients of a lane."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError
from light_scheduler.model.place import Place

from .batches import MAX_BATCH_BYTES
from .coordinator import Coordinator, KnownLog
from .fetching import StateConsumer
from .promptness import ANSWER_S, PRODUCE_ANSWER_S, Promptness
from .quiet_producer import QuietProducer
from .topic_ids import TopicIdLookUp

RESTORE_FETCH_BYTES = 8 << 20
RESTORE_ANSWER_S = 5.0


class LaneClients(Protocol):
    """Creates clients, which are not started. Simulations have their own implementation."""

    @property
    def transaction_timeout_ms(self) -> int:
        """Transaction timeout, after which the broker aborts a transaction."""
        ...

    def producer(self, transactional_id: str) -> AIOKafkaProducer:
        """Create the producer of a transactional id."""
        ...

    def reader(self) -> StateConsumer:
        """Create a read_committed consumer without a group."""
        ...

    async def fence(self, transactional_id: str, changelog: KnownLog) -> bool:
        """Fence the owners of an id; see `coordinator.Coordinator.fence`."""
        ...

    async def end(self, transactional_id: str, place: Place, *, commits: bool, changelog: KnownLog) -> None:
        """End the open transaction in a partition; see `coordinator.Coordinator.end`."""
        ...

    async def may_be_open(self, transactional_id: str, place: Place, end: int) -> bool:
        """Return whether an id may have something open before an offset; see `coordinator.Coordinator.may_be_open`."""
        ...


@dataclass
class KafkaClients:
    """Clients of a real cluster."""

    connection: Address
    transaction_timeout_ms: int

    def __post_init__(self) -> None:
        self.promptness = Promptness()
        self.coordinator = Coordinator(self._connect, self.transaction_timeout_ms)
        self.topic_id = TopicIdLookUp(self._connect)

    async def fence(self, transactional_id: str, changelog: KnownLog) -> bool:
        return await self.coordinator.fence(transactional_id, changelog)

    async def end(self, transactional_id: str, place: Place, *, commits: bool, changelog: KnownLog) -> None:
        await self.coordinator.end(transactional_id, place, commits=commits, changelog=changelog)

    async def may_be_open(self, transactional_id: str, place: Place, end: int) -> bool:
        return await self.coordinator.may_be_open(transactional_id, place, end)

    async def close(self) -> None:
        """Close the clients that lanes share."""
        await self.coordinator.close()
        await self.topic_id.close()

    def producer(self, transactional_id: str) -> AIOKafkaProducer:
        producer = QuietProducer(
            **self.promptness.arguments(connection_to(self.connection)),
            transactional_id=transactional_id,
            transaction_timeout_ms=self.transaction_timeout_ms,
            max_batch_size=MAX_BATCH_BYTES,
            linger_ms=0,
            retry_backoff_ms=50,
        )
        self.promptness.bound(producer.client, PRODUCE_ANSWER_S)
        return producer

    def reader(self) -> StateConsumer:
        consumer = StateConsumer(
            **self.promptness.arguments(connection_to(self.connection)),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=RESTORE_FETCH_BYTES,
        )
        self.promptness.bound(consumer._client, RESTORE_ANSWER_S)
        return consumer

    def _connect(self) -> AIOKafkaClient:
        client = AIOKafkaClient(**self.promptness.arguments(connection_to(self.connection)))
        self.promptness.bound(client, ANSWER_S, marks_silent=True)
        return client


@contextmanager
def no_stray_cancellation() -> Iterator[None]:
    """Raise BrokerError for a CancelledError if the running task was not cancelled.

    aiokafka cancels its own tasks, and the CancelledError can escape from a call. The caller would end silently.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise BrokerError("the Kafka client cancelled the request") from error
