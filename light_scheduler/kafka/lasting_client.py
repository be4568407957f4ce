"""A connection that is made when it is first needed, and stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka.client import AIOKafkaClient

from light_scheduler.log_fields import without_log_fields


class LastingClient:
    """Shared by all who ask questions over it. `close` it in the end."""

    def __init__(self, connect: Callable[[], AIOKafkaClient]) -> None:
        self._connect = connect
        self._client: AIOKafkaClient | None = None
        self._lock = asyncio.Lock()

    async def connected(self) -> AIOKafkaClient:
        """Return the client, with an address of a broker. Raises KafkaError."""
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
        """Close the client; the next one to ask gets a new one. With `only`, not if it is another one by now."""
        client = self._client
        if client is not None and only in (None, client):
            self._client = None
            await client.close()
