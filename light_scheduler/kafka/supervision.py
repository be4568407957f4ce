"""Runs the work on a partition until it is stopped, and restarts it after errors.

Lanes, delay lanes and standbys define their work and how they handle its failures. Retries and shutdown are the same
for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from aiokafka.errors import KafkaError

from light_scheduler.errors import SchedulerError
from light_scheduler.log_fields import NO_FIELDS, Fields, begin_log_fields

from .clients import no_stray_cancellation
from .retrying import Backoff

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0
CONFIRM_RETRY_S = 0.1
CLOSE_TIMEOUT_S = 3.0

Work = Callable[[], Awaitable[None]]
Failed = Callable[[Exception], Awaitable[bool]]
"""Called with each error of the work. Returns whether to retry."""

Fail = Callable[[BaseException], Awaitable[None]]
"""Ends the worker with an error."""


class Supervision:
    """Runs work repeatedly until `end`. `name` and `fields` are for its log lines."""

    def __init__(
        self,
        name: str,
        log: logging.Logger,
        first_retry_s: float = FIRST_RETRY_S,
        last_retry_s: float = LAST_RETRY_S,
        fields: Fields = NO_FIELDS,
    ) -> None:
        self._name = name
        self._fields = fields
        self._log = log
        self._backoff = Backoff(first_retry_s, last_retry_s)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def is_stopping(self) -> bool:
        """Return whether the work should stop."""
        return self._stopping.is_set()

    def start(self, work: Work, failed: Failed, fail: Fail, predecessor: asyncio.Task[None] | None) -> None:
        """Start, after the predecessor has ended, if any. An error raised by `failed` itself ends the worker."""
        self._task = asyncio.create_task(self._run(work, failed, fail, predecessor), name=self._name)

    def stop(self) -> None:
        """Tell the work to stop."""
        self._stopping.set()

    async def end(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Stop the work, and cancel it after a timeout. Return whether it ended by itself."""
        self.stop()
        if self._task is None:
            return True
        done, _ = await asyncio.wait([self._task], timeout=timeout_s)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])
        return bool(done)

    def went_well(self) -> None:
        """Record that the work makes progress, so that the next failure counts as the first one."""
        self._backoff.reset()

    def log_restart(self, error: Exception) -> None:
        """Log that the work restarts, with a traceback if the error is of an unexpected kind."""
        expected = isinstance(error, SchedulerError | KafkaError | OSError)
        self._log.warning("%s starts again: %r", self._name, error, exc_info=None if expected else error)

    def next_retry_s(self, most_s: float | None = None) -> float:
        """Return the pause (s) after a failure. It grows with each failure; the next one is at most `most_s`."""
        return self._backoff.next_s(most_s)

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the work should stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def confirm(self, confirmed: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a heartbeat confirms that the partition is ours, or until the work should stop.

        Call this right before fencing. Otherwise, a zombie could fence the partition's rightful owner.
        """
        while not self.is_stopping() and not await confirmed():
            await self.pause(CONFIRM_RETRY_S)

    async def _run(self, work: Work, failed: Failed, fail: Fail, predecessor: asyncio.Task[None] | None) -> None:
        """Run the work. An error that it cannot recover from ends the worker."""
        begin_log_fields(self._fields)
        try:
            with no_stray_cancellation():
                if predecessor is not None:
                    await asyncio.wait([predecessor])
                while not self.is_stopping():
                    try:
                        with no_stray_cancellation():
                            await work()
                    except Exception as error:  # noqa: BLE001 - `failed` decides for any error
                        if not await failed(error):
                            return
        except Exception as error:  # noqa: BLE001 - it ends the worker
            self._log.exception("%s gives up", self._name)
            await fail(error)
