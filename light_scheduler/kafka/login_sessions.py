"""Replaces connections before their login ends and the broker closes them.

A broker with `connections.max.reauth.ms` reports at login how long the login lasts (KIP-368), at most as long as the
token, if there is one. It closes the connection on the first request after that, and the request is lost: it is retried
after a pause, while a transaction waits. So a new connection is opened when most of the time is over, which is when
Kafka's own clients log in again. It uses the current certificates and token, and gets all new requests. The old one is
closed when all its answers have arrived.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaError

from .logged_in import LoggedIn, Place, let_go, replace
from .throttling import share_waits

FIRST_USED, LAST_USED = 0.85, 0.95
"""A connection is replaced at a random time between these parts of its session, so that a client does not replace all
at once. Tokens are renewed earlier (`tokens.USED_OF_LIFE`), so the new login lasts longer than the old one.
"""

RETRY_S, LONGEST_RETRY_S = 0.2, 5.0
"""Pauses between tries to connect while the old connection can be used. The pause doubles with each try, and is at most
half of the time left.
"""

log = logging.getLogger(__name__)


class Renewals:
    """Replaces the connections of a client. `connect` opens one to a broker, or raises KafkaError or OSError.

    A failure does not mean that the broker is unhealthy, since its current connections work. It is logged once until
    a try succeeds.
    """

    def __init__(self, client: AIOKafkaClient, connect: Callable[[Any], Awaitable[LoggedIn]]) -> None:
        self._client = client
        self._connect = connect
        self._failing: set[object] = set()
        self._timers: dict[Place, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, place: Place, conn: LoggedIn) -> None:
        """Replace the connection in a place before its session ends."""
        self._failing.discard(place.node)
        if (former := self._timers.pop(place, None)) is not None:
            former.cancel()
        if conn.session is not None:
            begun_at, lasts_s = conn.session
            at = begun_at + lasts_s * random.uniform(FIRST_USED, LAST_USED)  # nosec B311 # no secret
            self._timers[place] = asyncio.get_running_loop().call_at(at, self._begin, place, conn)

    async def end(self) -> None:
        """Stop replacing connections."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, place: Place, conn: LoggedIn) -> None:
        del self._timers[place]
        task = asyncio.create_task(self._renew(place, conn), name=f"logging in to broker {place.node} again")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _renew(self, place: Place, old: LoggedIn) -> None:
        """Replace a connection unless it is idle or gone. Retries while its login lasts."""
        pause_s = RETRY_S
        while self._is_used(place, old):
            try:
                new = await self._connect(place.node)
            except (KafkaError, OSError) as error:
                self._note_failure(place.node, error)
                left_s = old.left_s()
                if left_s <= 0:
                    return  # the broker closes it on the next request
                await asyncio.sleep(min(pause_s, max(left_s / 2, RETRY_S)))
                pause_s = min(2 * pause_s, LONGEST_RETRY_S)
                continue
            if self._is_used(place, old):
                await self._replace(place, old, new)
            else:
                new.close()

    def _note_failure(self, node: object, error: Exception) -> None:
        if node not in self._failing:
            self._failing.add(node)
            text = "cannot log in to broker %s again: %s. The connection is used until its login ends"
            log.warning(text, node, str(error) or repr(error))

    def _is_used(self, place: Place, conn: LoggedIn) -> bool:
        """Return whether a connection is open and current in its place. Closes it if it is idle."""
        idle_ms = (time.monotonic() - conn._last_action) * 1_000
        if not conn._requests and idle_ms >= self._client._connections_max_idle_ms:
            conn.close(reason=CloseReason.IDLE_DROP)
        return conn.connected() and self._client._conns.get(place) is conn

    async def _replace(self, place: Place, old: LoggedIn, new: LoggedIn) -> None:
        """Use the new connection for requests, and close the old one when no more answers are due on it."""
        new._last_action = old._last_action  # counts the client's requests, not logins
        retired = replace(self._client, place, old, new)
        share_waits(old, new)
        self.follow(place, new)
        await let_go(self._client, retired, old)
