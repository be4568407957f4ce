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
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError
from aiokafka.protocol.admin import SaslAuthenticateRequest

from .throttling import share_waits

FIRST_USED, LAST_USED = 0.85, 0.95
"""Between these parts of its session, at random, a connection is replaced: not all of a client at once. Tokens are
renewed before (`tokens.USED_OF_LIFE`), so the new login lasts for longer than the old one."""

RETRY_S, LONGEST_RETRY_S = 0.2, 5.0
"""How soon a connection that could not be made is tried again, for as long as the old one may be used: the time doubles
with each try, and is at most half of what is left."""

log = logging.getLogger(__name__)


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
    is_retired = False
    """Whether another one is in its place."""

    def send(self, request: Any, expect_response: bool = True) -> Any:
        answer = super().send(request, expect_response)
        if isinstance(request, SaslAuthenticateRequest):
            return self._noted(answer)
        return self._in_time(answer) if expect_response else answer

    async def _in_time(self, answer: Awaitable[Any]) -> Any:
        """Return an answer. Raises RequestTimedOutError if it is late and another connection is in this one's place.

        After a TimeoutError, aiokafka closes the connection that is in the place.
        """
        try:
            return await answer
        except TimeoutError as error:
            if not self.is_retired:
                raise
            self.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise RequestTimedOutError from error

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
                left_s = _left_s(old)
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
        old.is_retired = True
        share_waits(old, new)
        self.follow(place, new)
        if due := [answer for _, _, answer in old._requests if not answer.done()]:
            await asyncio.wait(due)
        old.close()
        del conns[retired]


def _left_s(conn: LoggedIn) -> float:
    """Return for how much longer the login of a connection lasts."""
    return 0.0 if conn.session is None else sum(conn.session) - asyncio.get_running_loop().time()
