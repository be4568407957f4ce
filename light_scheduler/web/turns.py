"""Turns: how many expensive requests a worker works on at a time, and how many wait for that.

HTTP shares the event loop with the lanes. Without a bound, a hundred clients that list without pause take all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from .problems import RETRY_AFTER_S, ProblemError

REFUSE_AFTER_S = 0.5
"""A refusal comes this late: a client that asks again at once would otherwise keep the loop busy with refusals."""


class Turns:
    """`at_work` requests at a time, in the order in which they came, and `waiting` more for up to `patience_s`.

    `what` names the requests in the refusal.
    """

    def __init__(self, what: str, *, at_work: int, waiting: int, patience_s: float) -> None:
        self._what = what
        self._free = asyncio.Semaphore(at_work)
        self._most_waiting = waiting
        self._patience_s = patience_s
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and hold it. Raises ProblemError (429) if too many wait already, or after the patience."""
        await self._wait()
        try:
            yield
        finally:
            self._free.release()

    async def _wait(self) -> None:
        if self._waiting >= self._most_waiting and self._free.locked():
            await asyncio.sleep(REFUSE_AFTER_S)
            raise self._refusal()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise self._refusal() from None
        finally:
            self._waiting -= 1

    def _refusal(self) -> ProblemError:
        return ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"This worker has too many {self._what}. Try again later.",
            retry_after_s=RETRY_AFTER_S,
        )
