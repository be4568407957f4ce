"""Connections whose login ends: another one takes the place of each before the broker closes it.

A broker with `connections.max.reauth.ms` says at the login how long that lasts (KIP-368): at most as long as the token,
if there is one. It closes the connection on the first request after that, and the request is lost: whoever sent it
tries again after a pause, in a transaction that others wait for. So a new connection is made when most of the time is
over; Kafka's own clients log in again then. Requests go over the new one from then on, with the certificates and the
token of that moment. The old one is closed when it has answered what it was asked.
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
"""Between these parts of its session, at random, a connection is replaced: not all of a client at once. Tokens are
renewed before (`tokens.USED_OF_LIFE`), so the new login lasts for longer than the old one."""

RETRY_S, LONGEST_RETRY_S = 0.2, 5.0
"""How soon a connection that could not be made is tried again, for as long as the old one may be used: the time doubles
with each try, and is at most half of what is left."""

log = logging.getLogger(__name__)


class Renewals:
    """Replaces the connections of a client. `connect` makes one to a broker, or raises KafkaError or OSError.

    That it fails says nothing of the broker, whose present connections work: it is logged once until it succeeds.
    """

    def __init__(self, client: AIOKafkaClient, connect: Callable[[Any], Awaitable[LoggedIn]]) -> None:
        self._client = client
        self._connect = connect
        self._failing: set[object] = set()
        self._timers: dict[Place, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, place: Place, conn: LoggedIn) -> None:
        """Replace a connection, which is the one in its place, before its session ends."""
        self._failing.discard(place.node)
        if (former := self._timers.pop(place, None)) is not None:
            former.cancel()
        if conn.session is not None:
            begun_at, lasts_s = conn.session
            at = begun_at + lasts_s * random.uniform(FIRST_USED, LAST_USED)  # nosec B311 # any time will do
            self._timers[place] = asyncio.get_running_loop().call_at(at, self._begin, place, conn)

    async def end(self) -> None:
        """Replace none any more."""
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
        """Replace a connection unless it is idle or has gone; try as often as needed while its login lasts."""
        pause_s = RETRY_S
        while self._is_used(place, old):
            try:
                new = await self._connect(place.node)
            except (KafkaError, OSError) as error:
                self._note_failure(place.node, error)
                left_s = old.left_s()
                if left_s <= 0:
                    return  # the broker closes it if it is used
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
        """Return whether a connection is the one in its place; end it if it is idle."""
        idle_ms = (time.monotonic() - conn._last_action) * 1_000
        if not conn._requests and idle_ms >= self._client._connections_max_idle_ms:
            conn.close(reason=CloseReason.IDLE_DROP)
        return conn.connected() and self._client._conns.get(place) is conn

    async def _replace(self, place: Place, old: LoggedIn, new: LoggedIn) -> None:
        """Have requests go over the new connection, and close the old one when no more answers are due on it."""
        new._last_action = old._last_action  # of the client's requests: a login is none
        retired = replace(self._client, place, old, new)
        share_waits(old, new)
        self.follow(place, new)
        await let_go(self._client, retired, old)
