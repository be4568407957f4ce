"""Connections that know when their login ends, and on which no question creates a topic.

A broker with `connections.max.reauth.ms` says at the login how long that lasts (KIP-368). It closes the connection on
the first request after that. One with `auto.create.topics.enable`, Kafka's default, creates a topic that is asked about
unless the question says not to; aiokafka's does not say so.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from aiokafka.protocol.admin import DescribeConfigsRequest, SaslAuthenticateRequest
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from .transaction_requests import DescribeProducersRequest, DescribeTransactionRequest

QUESTIONS = (
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTransactionRequest,
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetRequest,
)
"""Requests that change nothing."""


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
    """A connection that knows when its login ends, without a session never, and creates no topics."""

    session: Session | None = None
    is_retired = False
    """Whether another one is in its place."""
    ask_again: Callable[[Any], Awaitable[Any]] | None = None
    """Asks a question over another connection; None: one that is lost to an expired login is not asked again."""

    def send(self, request: Any, expect_response: bool = True) -> Any:
        answer = super().send(_creating_nothing(request), expect_response)
        if isinstance(request, SaslAuthenticateRequest):
            return self._noted(answer)
        if not expect_response:
            return answer
        in_time = self._in_time(answer)
        if self.ask_again is None or not isinstance(request, QUESTIONS):
            return in_time
        return self._answered(in_time, request, self.ask_again)

    def send_once(self, request: Any) -> Awaitable[Any]:
        """Send a request that is not to be sent again, whatever becomes of this connection."""
        return self._in_time(super().send(_creating_nothing(request)))

    def left_s(self) -> float:
        """Return for how much longer the login lasts."""
        return math.inf if self.session is None else sum(self.session) - asyncio.get_running_loop().time()

    async def _answered(self, answer: Awaitable[Any], request: Any, ask_again: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return an answer: over another connection, if this one was closed when its login had ended."""
        try:
            return await answer
        except KafkaConnectionError:
            if self.left_s() > 0:
                raise
        return await ask_again(request)

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


def _creating_nothing(request: Any) -> Any:
    if isinstance(request, MetadataRequest):
        request._allow_auto_topic_creation = False
    return request


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
        sasl_kerberos_service_name=client._sasl_kerberos_service_name,
        sasl_kerberos_domain_name=client._sasl_kerberos_domain_name,
        sasl_oauth_token_provider=client._sasl_oauth_token_provider,
    )
    try:
        await conn.connect()
    except TimeoutError as error:
        raise KafkaConnectionError(f"no answer from {host}:{port} in time") from error
    return conn


def replace(client: AIOKafkaClient, place: Place, old: LoggedIn, new: LoggedIn) -> Place:
    """Have requests go over another connection; return where the old one is until `let_go`."""
    retired = Place(Retired(), place.group)
    client._conns[place], client._conns[retired] = new, old
    old.is_retired = True
    return retired


async def let_go(client: AIOKafkaClient, retired: Place, old: LoggedIn) -> None:
    """Close a connection that was replaced when no more answers are due on it."""
    if due := [answer for _, _, answer in old._requests if not answer.done()]:
        await asyncio.wait(due)
    old.close()
    del client._conns[retired]
