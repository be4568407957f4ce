"""The Kafka clients that a lane has to itself, and how they are configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

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
