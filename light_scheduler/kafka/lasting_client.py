"""A client that connects when it is first needed, and stays connected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka.client import AIOKafkaClient

from light_scheduler.log_fields import without_log_fields


class LastingClient:
    """Holds a client for shared use. Call `close` at the end."""

    def __init__(self, connect: Callable[[], AIOKafkaClient]) -> None:
        self._connect = connect
        self._client: AIOKafkaClient | None = None
        self._lock = asyncio.Lock()

    async def connected(self) -> AIOKafkaClient:
        """Return the bootstrapped client. Raises KafkaError."""
        async with self._lock:
            if self._client is None:
                client = self._connect()
                try:
                    await without_log_fields(client.bootstrap())
                except BaseException:
                    await client.close()
                    raise
                self._client = client
        return self._client

    async def close(self, only: AIOKafkaClient | None = None) -> None:
        """Close the client; the next call of `connected` creates a new one. With `only`, close no other client."""
        client = self._client
        if client is not None and only in (None, client):
            self._client = None
            await client.close()
