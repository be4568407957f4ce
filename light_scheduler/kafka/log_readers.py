"""Readers of logs that are kept for the next one who needs one, so that it need not connect first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError

from .log_reader import LogReader

KEPT_S = 60.0
"""How long a reader that nobody needs stays connected."""

DOUBTED_AFTER_S = 1.0
"""A kept reader that has no answer by then is given up: its connections may be dead."""


class LogReaders:
    """Lends readers, each to one at a time. `most_kept` of them stay connected for a while after that.

    A reader knows nothing of earlier topics: the cluster is asked anew each time that one is lent.
    """

    def __init__(self, connection: Address, most_kept: int) -> None:
        self._connection = connection
        self._most_kept = most_kept
        self._kept: dict[LogReader, asyncio.Task[None]] = {}  # with what closes it in the end

    @asynccontextmanager
    async def open(self, topic: str) -> AsyncIterator[LogReader]:
        """Lend a reader of a topic. Raises BrokerError."""
        reader = await self._opened(topic)
        try:
            yield reader
        except BaseException:
            await reader.close()
            raise
        await self._keep(reader)

    async def close(self) -> None:
        """Close the readers that are kept, and keep none from now on."""
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
            except BrokerError:  # then none of the others is trusted: each would take as long
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
