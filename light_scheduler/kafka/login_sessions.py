"""Connections whose login ends: another one takes the place of each before the broker closes it.

A broker with `connections.max.reauth.ms` says at the login how long that lasts (KIP-368): at most as long as the token,
if there is one. It closes the connection on the first request after that, and the request is lost: whoever sent it
tries again after a pause, in a transaction that others wait for. So a new connection is made when most of the time is
over; Kafka's own clients log in again then. Requests go over the new one from then on, with the certificates and the
token of that moment. The old one is closed when it has answered what it was asked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import SaslAuthenticateRequest

FIRST_USED, LAST_USED = 0.85, 0.95
"""Between these parts of its session, at random, a connection is replaced: not all of a client at once. Tokens are
renewed before (`tokens.USED_OF_LIFE`), so the new login lasts for longer than the old one."""

RETRY_S = 0.2
"""How soon a connection that could not be made is tried again, for as long as the old one may be used."""


class Place(NamedTuple):
    """What aiokafka keeps a connection under: a broker, and for what."""

    node: object
    group: ConnectionGroup


class Retired:
    """Stands for the node of one connection that has been replaced, but has answers due."""


class Session(NamedTuple):
    """When a login began, at the latest, by the clock of the event loop, and how long (s) it lasts."""

    begun_at: float
    lasts_s: float


class LoggedIn(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka is not typed
    """A connection that knows when its login ends; without a session, never."""

    session: Session | None = None

    def send(self, request: Any, expect_response: bool = True) -> Any:
        answer = super().send(request, expect_response)
        return self._noted(answer) if isinstance(request, SaslAuthenticateRequest) else answer

    async def _noted(self, answer: Awaitable[Any]) -> Any:
        begun_at = asyncio.get_running_loop().time()  # for the broker, it begins when this has reached it
        answered = await answer
        lasts_ms = getattr(answered, "session_lifetime_ms", 0)  # a broker before Kafka 2.2 says nothing
        self.session = Session(begun_at, lasts_ms / 1_000) if lasts_ms > 0 else None
        return answered


async def connect(client: AIOKafkaClient, host: str, port: int) -> LoggedIn:
    """Return a connection as a client makes them. Raises KafkaError, OSError."""
    conn = LoggedIn(
        host,
        port,
        client_id=client._client_id,
        request_timeout_ms=client._request_timeout_ms,
        ssl_context=client._ssl_context,
        security_protocol=client._security_protocol,
        on_close=client._on_connection_closed,
        max_idle_ms=client._connections_max_idle_ms,
        sasl_mechanism=client._sasl_mechanism,
        sasl_plain_username=client._sasl_plain_username,
        sasl_plain_password=client._sasl_plain_password,
        sasl_oauth_token_provider=client._sasl_oauth_token_provider,
    )
    try:
        await conn.connect()
    except TimeoutError as error:
        raise KafkaConnectionError(f"no answer from {host}:{port} in time") from error
    return conn


class Renewals:
    """Replaces the connections of a client. `connect` makes one to a broker, or returns None if that fails."""

    def __init__(self, client: AIOKafkaClient, connect: Callable[[Any], Awaitable[LoggedIn | None]]) -> None:
        self._client = client
        self._connect = connect
        self._timers: dict[Place, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, place: Place, conn: LoggedIn) -> None:
        """Replace a connection, which is the one in its place, before its session ends."""
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
        loop = asyncio.get_running_loop()
        while self._is_used(place, old):
            new = await self._connect(place.node)
            if new is None:
                if old.session is None or loop.time() >= sum(old.session):
                    return  # the broker closes it if it is used
                await asyncio.sleep(RETRY_S)
            elif not self._is_used(place, old):
                new.close()
            else:
                await self._replace(place, old, new)

    def _is_used(self, place: Place, conn: LoggedIn) -> bool:
        """Tell whether a connection is the one in its place; end it if it is idle."""
        idle_ms = (time.monotonic() - conn._last_action) * 1_000
        if not conn._requests and idle_ms >= self._client._connections_max_idle_ms:
            conn.close(reason=CloseReason.IDLE_DROP)
        return conn.connected() and self._client._conns.get(place) is conn

    async def _replace(self, place: Place, old: LoggedIn, new: LoggedIn) -> None:
        """Have requests go over the new connection, and close the old one when no more answers are due on it."""
        new._last_action = old._last_action  # of the client's requests: a login is none
        conns, retired = self._client._conns, Place(Retired(), place.group)
        conns[place], conns[retired] = new, old
        self.follow(place, new)
        if due := [answer for _, _, answer in old._requests if not answer.done()]:
            await asyncio.wait(due)
        old.close()
        del conns[retired]
