"""A pool of log readers, which stay connected for a while for the next use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError

from .log_reader import LogReader

KEPT_S = 60.0
"""How long an unused reader stays connected."""

DOUBTED_AFTER_S = 1.0
"""Timeout of the first answer of a kept reader. Later, its connections are assumed to be dead."""


class LogReaders:
    """Lends readers, each to one user at a time. Up to `most_kept` of them stay connected for a while afterwards.

    A reader keeps no knowledge of topics: metadata are requested each time it is lent.
    """

    def __init__(self, connection: Address, most_kept: int) -> None:
        self._connection = connection
        self._most_kept = most_kept
        self._kept: dict[LogReader, asyncio.Task[None]] = {}  # reader -> task that closes it later

    @asynccontextmanager
    async def open(self, topic: str) -> AsyncIterator[LogReader]:
        """Lend a reader for a topic. Raises BrokerError."""
        reader = await self._opened(topic)
        try:
            yield reader
        except BaseException:
            await reader.close()
            raise
        await self._keep(reader)

    async def close(self) -> None:
        """Close all kept readers, and keep no more."""
        self._most_kept = 0
        await self._close_kept()

    async def _close_kept(self) -> None:
        kept, self._kept = self._kept, {}
        for closing in kept.values():
            closing.cancel()
        await asyncio.gather(*(reader.close() for reader in kept), *kept.values(), return_exceptions=True)

    async def _opened(self, topic: str) -> LogReader:
        while self._kept:
            reader, closing = self._kept.popitem()
            closing.cancel()
            try:
                await reader.open(topic, DOUBTED_AFTER_S)
            except BrokerError:  # trust none of the others: each could take as long
                await asyncio.gather(reader.close(), self._close_kept())
            except BaseException:
                await reader.close()
                raise
            else:
                return reader
        return await LogReader.of(self._connection, topic)

    async def _keep(self, reader: LogReader) -> None:
        if len(self._kept) >= self._most_kept:
            await reader.close()
            return
        reader.release()
        self._kept[reader] = asyncio.create_task(self._close_unused(reader))

    async def _close_unused(self, reader: LogReader) -> None:
        await asyncio.sleep(KEPT_S)
        del self._kept[reader]
        await reader.close()
