"""A producer that starts when it is first needed, and stays connected until an error."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaProducer

from light_scheduler.connection import Address, connection_to
from light_scheduler.model import Headers

from .connection import started_producer, stop_producer


class LastingProducer:
    """An idempotent producer for services of a worker other than lanes.

    Call `reset` after an error, since an idempotent producer may then be unusable, and `close` at the end. It retries
    forever, so callers must set timeouts.
    """

    def __init__(self, connection: Address) -> None:
        self._connection = connection_to(connection)
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int,
        key: bytes | None = None,
        headers: Headers | None = None,
    ) -> asyncio.Future[Any]:
        """Send a record. Return a future that is done when it is acknowledged. Raises BrokerError, KafkaError."""
        producer = await self._started()
        sent: asyncio.Future[Any] = await producer.send(topic, value, key=key, partition=partition, headers=headers)
        return sent

    async def reset(self) -> None:
        """Stop the producer. The next `send` starts a new one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_producer(producer)

    async def close(self) -> None:
        """Send pending records and close the connection, within some seconds."""
        await self.reset()

    async def _started(self) -> AIOKafkaProducer:
        async with self._lock:
            if self._producer is None:
                self._producer = await started_producer(self._connection.aiokafka())
            return self._producer
