"""The Kafka clients that a lane has to itself, and how they are configured."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from light_scheduler.errors import BrokerError

from .batches import MAX_BATCH_BYTES
from .fetching import StateConsumer

RESTORE_FETCH_BYTES = 8 << 20


class LaneClients(Protocol):
    """Makes clients that are not started yet; simulations have their own."""

    @property
    def transaction_timeout_ms(self) -> int:
        """Age at which the broker aborts a transaction."""
        ...

    def producer(self, transactional_id: str) -> AIOKafkaProducer:
        """Make the producer of a transactional id."""
        ...

    def reader(self) -> AIOKafkaConsumer:
        """Make a read_committed consumer without a group."""
        ...


@dataclass(frozen=True)
class KafkaClients:
    """Clients of a real cluster."""

    bootstrap_servers: str
    transaction_timeout_ms: int

    def producer(self, transactional_id: str) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self.bootstrap_servers,
            transactional_id=transactional_id,
            transaction_timeout_ms=self.transaction_timeout_ms,
            max_batch_size=MAX_BATCH_BYTES,
            linger_ms=0,
            retry_backoff_ms=50,
        )

    def reader(self) -> AIOKafkaConsumer:
        return StateConsumer(
            bootstrap_servers=self.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=RESTORE_FETCH_BYTES,
        )


@contextmanager
def no_stray_cancellation() -> Iterator[None]:
    """Raise BrokerError instead of a CancelledError that the running task was not sent.

    aiokafka cancels tasks of its own and may let that out of a call: whoever awaits it would end without a word.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise BrokerError("the Kafka client broke off what it was asked to do") from error
