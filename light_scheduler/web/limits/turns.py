"""Turns limit how many expensive requests a worker handles at a time, and how many wait.

HTTP shares the event loop with the lanes. Without a limit, a hundred clients that list without pause would take all of
it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError

from .shares import HOLDER, Holder, Shares

REFUSE_AFTER_S = 0.5
"""Delay of a refusal. Otherwise clients that retry at once would keep the loop busy with refusals."""


class Turns:
    """`at_work` requests at a time, and `waiting` more for up to `patience_s`. Of both, each holder has a share.

    Holders are served in turn; requests of one holder go in order of arrival. `what` names the requests in the error.
    """

    def __init__(self, what: str, *, at_work: int, waiting: int, patience_s: float) -> None:
        self._what = what
        self._at_work = Shares(at_work)
        self._places = Shares(waiting)
        self._patience_s = patience_s
        self._waiting: dict[Holder, deque[asyncio.Future[None]]] = {}  # the holder served last comes last

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and hold it. Raises ProblemError (429) if too many requests are waiting, or after
        `patience_s`."""
        holder = HOLDER.get()
        if self._at_work.has_room(holder):  # then no waiting request is allowed to run
            self._at_work.take(holder)
        else:
            await self._wait(holder)
        try:
            yield
        finally:
            self._end(holder)

    async def _wait(self, holder: Holder) -> None:
        if not self._places.has_room(holder):
            await asyncio.sleep(REFUSE_AFTER_S)
            raise refusal(self._what)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(turn)
        with self._places.holding(holder):
            try:
                async with asyncio.timeout(self._patience_s):
                    await turn
            except TimeoutError:
                self._leave(holder, turn)
                raise refusal(self._what) from None
            except asyncio.CancelledError:
                self._leave(holder, turn)
                raise

    def _leave(self, holder: Holder, turn: asyncio.Future[None]) -> None:
        """Stop waiting. The turn may have come at the same moment."""
        if not turn.cancelled():
            self._end(holder)
            return
        waiting = self._waiting.get(holder, deque())
        if turn in waiting:
            waiting.remove(turn)
        if not waiting:
            self._waiting.pop(holder, None)

    def _end(self, holder: Holder) -> None:
        self._at_work.give_back(holder)
        self._go_behind(holder)
        while (following := next(filter(self._at_work.has_room, self._waiting), None)) is not None:
            turn = self._waiting[following].popleft()
            if not turn.cancelled():
                self._at_work.take(following)
                turn.set_result(None)
            self._go_behind(following)

    def _go_behind(self, holder: Holder) -> None:
        if waiting := self._waiting.pop(holder, None):
            self._waiting[holder] = waiting


def refusal(what: str) -> ProblemError:
    """Return the error (429) for a request of a kind that the worker has too many of."""
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"This worker has too many {what}. Try again later.",
        retry_after_s=RETRY_AFTER_S,
    )
