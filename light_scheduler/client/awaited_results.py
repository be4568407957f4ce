"""Waits for results: one reader of the results topic, and a future for each waiting command.

The reader takes its position before the first command is sent, so it misses no answer. It reads one partition, which
the commands name for their answers, so it does not receive the answers to clients that use other partitions.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import Self

from light_scheduler.errors import BrokerError, FormatError
from light_scheduler.model import Result
from light_scheduler.wire import correlation_id_of, decode_result

from .reading import Reader


class Answers:
    """The results of one client's commands, distinguished from others' by correlation ids."""

    def __init__(self, reader: Reader, partition: int) -> None:
        self.partition = partition
        self._reader = reader
        self._waiting: dict[bytes, asyncio.Future[Result]] = {}
        self._prefix = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._task = asyncio.create_task(self._read(), name="light-scheduler results")
        # Not in a `finally` of the task: a task that is cancelled before its first step runs no code.
        self._task.add_done_callback(self._fail_waiting)

    @property
    def running(self) -> bool:
        """Whether results are still being read. If not, a new reader is needed."""
        return not self._task.done()

    def expect(self) -> Expected:
        """Return a new correlation id and the future of its result."""
        correlation_id = f"{self._prefix}-{next(self._numbers)}".encode()
        future = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = future
        return Expected(self._waiting, correlation_id, future)

    async def close(self) -> None:
        """Stop reading. Waiting callers get a BrokerError."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._reader.close()

    async def _read(self) -> None:
        async for record in self._reader:
            future = self._waiting.get(correlation_id_of(record.headers) or b"")
            if future is None or future.done():
                continue
            try:
                future.set_result(decode_result(record.value))
            except FormatError as error:
                future.set_exception(error)

    def _fail_waiting(self, ended: asyncio.Task[None]) -> None:
        cause = None if ended.cancelled() else ended.exception()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BrokerError(f"results are no longer read: {cause or 'the client was closed'}"))


class Expected:
    """One awaited result. Use it as a context manager, so that a caller who gives up leaves nothing behind."""

    def __init__(
        self, waiting: dict[bytes, asyncio.Future[Result]], correlation_id: bytes, result: asyncio.Future[Result]
    ) -> None:
        self._waiting = waiting
        self.correlation_id = correlation_id
        self.result = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._waiting.pop(self.correlation_id, None)
        if not self.result.cancel() and not self.result.cancelled():
            # Mark a failure as retrieved, even if the caller gave up before it came.
            self.result.exception()
