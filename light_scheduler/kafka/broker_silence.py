"""Detects silent brokers: an answer is due, but no byte has arrived for some time in which the event loop listened.

A blocked event loop runs expired timers before it reads data that arrived meanwhile. So time is counted in steps, and
late steps do not count. Neither do steps in which the broker throttles the client.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason

from .throttling import is_throttled

STEP_S = 0.2


class Steps:
    """Calls `stepped` after each step that was on time, until it returns False or `end` is called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stepped: Callable[[], bool]) -> None:
        self._loop = loop
        self._stepped = stepped
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start, unless already running."""
        if self._timer is None:
            self._timer = self._loop.call_later(STEP_S, self._step)

    def end(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _step(self) -> None:
        assert self._timer is not None
        is_late = self._loop.time() - self._timer.when() > STEP_S
        self._timer = None
        if is_late or self._stepped():
            self.begin()


@asynccontextmanager
async def patience(seconds: float, is_excused: Callable[[], bool] = lambda: False) -> AsyncIterator[None]:
    """Limit the duration of the body; raises TimeoutError.

    Time in which the event loop was blocked does not count, nor does time while `is_excused` returns True.
    """
    loop = asyncio.get_running_loop()
    left = math.ceil(seconds / STEP_S)

    def stepped() -> bool:
        nonlocal left
        left -= not is_excused()
        if left <= 0:
            bound.reschedule(loop.time())
        return left > 0

    steps = Steps(loop, stepped)
    async with asyncio.timeout(None) as bound:
        steps.begin()
        try:
            yield
        finally:
            steps.end()


class Watch:
    """Ends a client's waits for silent brokers. `limit_s` returns how long a connection may be silent; None: no limit.

    The oldest request fails as after aiokafka's own timeout, which closes the connection.
    """

    def __init__(self, client: AIOKafkaClient, limit_s: Callable[[ConnectionGroup], float | None]) -> None:
        self._client = client
        self._limit_s = limit_s
        self._silent: dict[Any, tuple[object, int]] = {}  # connection -> its last progress, number of steps since
        self._steps = Steps(client._loop, self._stepped)

    def begin(self) -> None:
        """Watch until no answer is due. Call this for each request."""
        self._steps.begin()

    def _stepped(self) -> bool:
        before, self._silent = self._silent, {}
        for (_, group), conn in list(self._client._conns.items()):
            shown, limit_s = _shown(conn), self._limit_s(group)
            if shown is None or limit_s is None:
                continue
            last, steps = before.get(conn, (None, 0))
            steps = steps + 1 if shown == last and not is_throttled(conn) else 0
            self._silent[conn] = shown, steps
            if steps * STEP_S >= limit_s:
                _give_up(conn)
        return bool(self._silent)


def _shown(conn: Any) -> object:
    """Return a value that changes with each byte received: the oldest request and the size of its partial answer.

    None if no answer is due.
    """
    return (conn._requests[0][0], len(conn._reader._buffer)) if conn._requests else None


def _give_up(conn: Any) -> None:
    for _, _, answer in conn._requests:
        if not answer.done():
            answer.set_exception(TimeoutError())
            return
    conn.close(reason=CloseReason.CONNECTION_TIMEOUT)
