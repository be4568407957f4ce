"""Runs the work on a partition until it is told to stop, and starts it again after errors.

Lanes, delay lanes and standbys say what their work is and what they drop when it fails; when it is tried again, and how
it ends, is the same for all.
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
"""Called with each error of the work; returns whether to try again."""

Fail = Callable[[BaseException], Awaitable[None]]
"""Ends the worker with an error."""


class Supervision:
    """Runs some work again and again until `end`. `name` is how the log speaks of it, `fields` what its lines have."""

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
        """Return whether it is to end."""
        return self._stopping.is_set()

    def start(self, work: Work, failed: Failed, fail: Fail, predecessor: asyncio.Task[None] | None) -> None:
        """Begin, when a predecessor that is still closing has ended. An error of `failed` itself ends the worker."""
        self._task = asyncio.create_task(self._run(work, failed, fail, predecessor), name=self._name)

    def stop(self) -> None:
        """Have the work end."""
        self._stopping.set()

    async def end(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Let the work end by itself within a bound, else cancel it; return whether it ended by itself."""
        self.stop()
        if self._task is None:
            return True
        done, _ = await asyncio.wait([self._task], timeout=timeout_s)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])
        return bool(done)

    def went_well(self) -> None:
        """Note that the work gets on: the next failure is the first one."""
        self._backoff.reset()

    def log_restart(self, error: Exception) -> None:
        """Log that the work starts again; with a traceback if the error is of an unexpected kind."""
        expected = isinstance(error, SchedulerError | KafkaError | OSError)
        self._log.warning("%s starts again: %r", self._name, error, exc_info=None if expected else error)

    def next_retry_s(self, most_s: float | None = None) -> float:
        """Return how long to pause after a failure: longer each time, but for the next time at most `most_s`."""
        return self._backoff.next_s(most_s)

    async def pause(self, seconds: float) -> None:
        """Wait for some time, or until it is to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def confirm(self, confirmed: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a heartbeat is accepted and the partition is ours, or it is to end.

        To be called right before fencing: a zombie that fenced would fence the partition's rightful owner.
        """
        while not self.is_stopping() and not await confirmed():
            await self.pause(CONFIRM_RETRY_S)

    async def _run(self, work: Work, failed: Failed, fail: Fail, predecessor: asyncio.Task[None] | None) -> None:
        """Nothing dies quietly: what it cannot recover from ends the worker."""
        begin_log_fields(self._fields)
        try:
            with no_stray_cancellation():
                if predecessor is not None:
                    await asyncio.wait([predecessor])
                while not self.is_stopping():
                    try:
                        with no_stray_cancellation():
                            await work()
                    except Exception as error:  # noqa: BLE001 - whatever it is, `failed` says what follows
                        if not await failed(error):
                            return
        except Exception as error:  # noqa: BLE001 - it ends the worker
            self._log.exception("%s gives up", self._name)
            await fail(error)
