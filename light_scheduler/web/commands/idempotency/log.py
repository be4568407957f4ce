"""Follows the idempotency topic: one reader, and a future for each request that waits for something in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from light_scheduler.errors import BrokerError
from light_scheduler.web.commands.channel import Followed
from light_scheduler.wire.idempotency import claim_event_of

from .claims import Claims

SLICE = 100
"""Records read at a time, in about a millisecond."""


class ClaimLog:
    """Reads from the first use on; `claims` is the state so far. `close` it at the end.

    If the reader fails, the next use starts a new one from the beginning.
    """

    def __init__(self, follow: Callable[[float], Awaitable[Followed]]) -> None:
        self._follow = follow
        self._opening = asyncio.Lock()
        self._reader: Followed | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self.claims = Claims()
        self.reached = -1
        """Offset of the last record that was read."""

    async def open(self, timeout_s: float) -> None:
        """Make sure that the topic is read. Raises BrokerError."""
        async with self._opening:
            if self._task is not None and not self._task.done():
                return
            await self._stop()
            self._reader = await self._follow(timeout_s)
            self.claims, self.reached = Claims(), -1
            self._task = asyncio.create_task(self._read(self._reader), name="light-scheduler idempotency")
            self._task.add_done_callback(self._fail_waiting)

    async def until(self, is_there: Callable[[], bool]) -> None:
        """Wait until a condition on the read records is true. Raises BrokerError if reading has stopped."""
        if is_there():
            return
        if self._task is None or self._task.done():
            raise BrokerError("the idempotency topic is not read")
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = is_there
        try:
            await future
        finally:
            del self._waiting[future]

    async def close(self) -> None:
        """Stop reading. Waiting requests fail with BrokerError."""
        async with self._opening:
            await self._stop()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        reader, self._reader = self._reader, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if reader is not None:
            await reader.close()

    async def _read(self, reader: Followed) -> None:
        async for record in reader:
            found = claim_event_of(record)
            if found is not None:
                self.claims.apply(*found, record.timestamp)
            if record.partition == 0:
                self.reached = record.offset
            for future, is_there in self._waiting.items():
                if not future.done() and is_there():
                    future.set_result(None)
            if record.offset % SLICE == 0:
                await asyncio.sleep(0)  # fetched records come without a pause, and lanes share the loop

    def _fail_waiting(self, ended: asyncio.Task[None]) -> None:
        cause = None if ended.cancelled() else ended.exception()
        for future in self._waiting:
            if not future.done():
                future.set_exception(BrokerError(f"the idempotency topic is no longer read: {cause or 'closed'}"))
