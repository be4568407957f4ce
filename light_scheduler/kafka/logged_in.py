"""Connections that know when their login ends, and that never create topics by metadata requests.

A broker with `connections.max.reauth.ms` reports at login how long the login lasts (KIP-368). It closes the connection
on the first request after that. A broker with `auto.create.topics.enable`, Kafka's default, creates topics that are
requested, unless the metadata request forbids it; aiokafka's does not.
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
    """aiokafka's key of a connection: a broker, and the purpose."""

    node: object
    group: ConnectionGroup


class Retired:
    """Stands for the node of a connection that was replaced but still has answers due."""


class Session(NamedTuple):
    """A login: the latest time at which it began, by the event loop's clock, and how long (s) it lasts."""

    begun_at: float
    lasts_s: float


class LoggedIn(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka is not typed
    """A connection that knows when its login ends (never without a session), and creates no topics."""

    session: Session | None = None
    is_retired = False
    """Whether another connection has replaced it."""
    ask_again: Callable[[Any], Awaitable[Any]] | None = None
    """Sends a request over another connection. None: a request lost to an expired login is not sent again."""

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
        """Send a request without sending it again if this connection is lost."""
        return self._in_time(super().send(_creating_nothing(request)))

    def left_s(self) -> float:
        """Return the time (s) until the login ends."""
        return math.inf if self.session is None else sum(self.session) - asyncio.get_running_loop().time()

    async def _answered(self, answer: Awaitable[Any], request: Any, ask_again: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return the answer. If this connection was closed because its login ended, ask over another one."""
        try:
            return await answer
        except KafkaConnectionError:
            if self.left_s() > 0:
                raise
        return await ask_again(request)

    async def _in_time(self, answer: Awaitable[Any]) -> Any:
        """Return the answer. If it is late and this connection was replaced, close this one.

        Then raises RequestTimedOutError, since aiokafka would close the replacement after a TimeoutError.
        """
        try:
            return await answer
        except TimeoutError as error:
            if not self.is_retired:
                raise
            self.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise RequestTimedOutError from error

    async def _noted(self, answer: Awaitable[Any]) -> Any:
        begun_at = asyncio.get_running_loop().time()  # for the broker, the login begins a little later
        answered = await answer
        lasts_ms = getattr(answered, "session_lifetime_ms", 0)  # brokers before Kafka 2.2 do not report it
        self.session = Session(begun_at, lasts_ms / 1_000) if lasts_ms > 0 else None
        return answered


def _creating_nothing(request: Any) -> Any:
    if isinstance(request, MetadataRequest):
        request._allow_auto_topic_creation = False
    return request


async def connect(client: AIOKafkaClient, host: str, port: int) -> LoggedIn:
    """Return a connection with the client's options. Raises KafkaError, OSError."""
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
    """Replace a connection for new requests. Return the place of the old one until `let_go`."""
    retired = Place(Retired(), place.group)
    client._conns[place], client._conns[retired] = new, old
    old.is_retired = True
    return retired


async def let_go(client: AIOKafkaClient, retired: Place, old: LoggedIn) -> None:
    """Close a replaced connection once no more answers are due on it."""
    if due := [answer for _, _, answer in old._requests if not answer.done()]:
        await asyncio.wait(due)
    old.close()
    del client._conns[retired]
