"""Limits how long brokers may take to answer. A hanging broker accepts connections but stays silent.

aiokafka has one timeout for everything, which must allow for the slowest answer. Here, each connection has a timeout
for silence: if an answer is due and nothing arrives, aiokafka closes the connection, asks other brokers for the current
leader, and sends the request again. A broker that one client finds silent counts as silent for all clients of the
worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import threading
import time
from functools import partial
from typing import Any
from weakref import WeakSet

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

from light_scheduler.connection import Connection

from .broker_silence import Watch, patience
from .logged_in import LoggedIn, Place, connect
from .login_sessions import Renewals
from .throttling import follow

CONNECT_S = 2.0
LATE_S = 0.5
"""Additional time for connecting if the event loop is blocked."""
ANSWER_S = 2.0
"""For fetches and look-ups, which every healthy broker answers immediately."""
PRODUCE_ANSWER_S = 4.0
"""For batches. Their answers wait for replicas, so a missing answer says nothing about the broker."""
AVOID_S = 10.0
"""How long a silent broker is avoided if another broker can be used."""
RECONNECT_S = 2.0
"""Pause before reconnecting to a silent broker, since a client opens no other connections meanwhile."""

log = logging.getLogger(__name__)


class Promptness:
    """Limits the answer times for the clients of a worker, in any thread, and remembers silent brokers."""

    def __init__(self) -> None:
        self._silent: dict[str, float] = {}  # host:port -> since when (monotonic, s)
        self._clients: WeakSet[AIOKafkaClient] = WeakSet()
        self._lock = threading.Lock()

    def arguments(self, connection: Connection) -> dict[str, Any]:
        """Return the arguments of an aiokafka client, with bootstrap servers that answer."""
        return {**connection.aiokafka(), "bootstrap_servers": self.preferred(connection.bootstrap_servers)}

    def preferred(self, bootstrap_servers: str) -> list[str]:
        """Return the bootstrap servers without recently silent ones; all of them if none is left."""
        servers = [server.strip() for server in bootstrap_servers.split(",")]
        return [server for server in servers if not self._is_silent(server, AVOID_S)] or servers

    def bound(
        self, client: AIOKafkaClient, answer_s: float, *, is_member: bool = False, marks_silent: bool = False
    ) -> None:
        """Make a client, which must not be connected yet, give up on silent brokers.

        Requests of a group member to its coordinator wait for other members, so they keep the client's own timeout.
        With `marks_silent`, a timeout marks the broker as silent. Use that only for clients whose requests every
        healthy broker answers immediately.
        """
        waiting_s, closed, close = client._request_timeout_ms / 1_000, client._on_connection_closed, client.close
        client._request_timeout_ms = (CONNECT_S + LATE_S) * 1_000
        waits_for_members = {ConnectionGroup.COORDINATION} if is_member else set()
        watch = Watch(client, lambda group: None if group in waits_for_members else answer_s)
        connecting = asyncio.Lock()  # aiokafka opens one connection at a time; this wait does not count

        async def connected_again(node_id: Any) -> LoggedIn:
            async with connecting:
                return await self._connected_again(client, node_id)

        renewals = Renewals(client, connected_again)

        async def get_conn(
            node_id: Any,
            *,
            group: ConnectionGroup = ConnectionGroup.DEFAULT,
            no_hint: bool = False,  # noqa: ARG001 - aiokafka's parameter, which it does not use
        ) -> Any:
            place = Place(node_id, group)
            conn = open_connection(client, place)
            if conn is None:
                async with connecting:
                    conn = open_connection(client, place) or await self._connected(client, node_id)
                    if conn is not None and client._conns.get(place) is not conn:
                        client._conns[place] = conn
                        renewals.follow(place, conn)
            if conn is not None:
                conn._request_timeout = waiting_s
                follow(conn)
                watch.begin()
            return conn

        def on_closed(conn: Any, reason: CloseReason) -> None:
            groups = {group for (_, group), each in client._conns.items() if each is conn}
            if marks_silent and reason is CloseReason.CONNECTION_TIMEOUT and groups == {ConnectionGroup.DEFAULT}:
                self._found_silent(client, _address(conn))
            if groups:  # otherwise it was never used
                closed(conn, reason)

        async def end() -> None:
            await renewals.end()
            await close()

        client._get_conn, client._on_connection_closed, client.close = get_conn, on_closed, end
        client.get_random_node = partial(self._random_node, client)
        with self._lock:
            self._clients.add(client)

    def _random_node(self, client: AIOKafkaClient) -> Any:
        nodes = list(client.cluster.brokers())
        answering = [node for node in nodes if not self._is_silent(_address(node), AVOID_S)]
        return random.choice(answering or nodes).nodeId if nodes else None  # nosec B311 # any will do

    async def _connected(self, client: AIOKafkaClient, node_id: Any) -> LoggedIn | None:
        """Return a new connection; None on failure, as in aiokafka. Marks the broker as silent if it takes too long."""
        broker = client.cluster.broker_metadata(node_id)
        if broker is None:
            log.error("broker %s is not among those that Kafka names", node_id)
        elif not self._is_silent(address := _address(broker), RECONNECT_S):
            try:
                return await _connect(client, broker)
            except TimeoutError:
                self._found_silent(client, address)
            except (KafkaError, OSError) as error:
                log.error("cannot connect to broker %s: %s", address, error)
        client.force_metadata_update()
        return None

    async def _connected_again(self, client: AIOKafkaClient, node_id: Any) -> LoggedIn:
        """Return another connection to a connected broker. Never marks it as silent: the existing one may work.

        Raises KafkaError, OSError.
        """
        broker = client.cluster.broker_metadata(node_id)
        if broker is None or self._is_silent(_address(broker), RECONNECT_S):
            raise KafkaConnectionError("it does not answer, or Kafka does not name it any more")
        try:
            return await _connect(client, broker)
        except TimeoutError as error:
            raise KafkaConnectionError(f"it has not answered within {CONNECT_S:.0f} s") from error

    def _is_silent(self, address: str, lately_s: float) -> bool:
        return time.monotonic() - self._silent.get(address, -math.inf) < lately_s

    def _found_silent(self, client: AIOKafkaClient, address: str) -> None:
        if len(client.cluster.brokers()) < 2:
            return  # there is no other broker
        log.warning("broker %s does not answer", address)
        self._silent[address] = time.monotonic()
        with self._lock:
            clients = list(self._clients)
        for each in clients:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                each._loop.call_soon_threadsafe(_disconnect, each, address)


async def _connect(client: AIOKafkaClient, broker: Any) -> LoggedIn:
    """Return a new connection to a broker. Raises TimeoutError, KafkaError, OSError."""
    await _have_token(client)
    async with client._get_conn_lock, patience(CONNECT_S):
        return await connect(client, broker.host, broker.port)


async def _have_token(client: AIOKafkaClient) -> None:
    """Get the token for a login in advance, since the token server's delay says nothing about the broker.

    Raises KafkaError.
    """
    if client._sasl_oauth_token_provider is not None:
        await client._sasl_oauth_token_provider.token()


def open_connection(client: AIOKafkaClient, place: Place) -> Any:
    """Return the open connection in a place, if any."""
    conn = client._conns.get(place)
    return conn if conn is not None and conn.connected() else None


def _address(broker: Any) -> str:
    return f"{broker.host}:{broker.port}"


def _disconnect(client: AIOKafkaClient, address: str) -> None:
    for conn in list(client._conns.values()):
        if _address(conn) == address:
            conn.close(reason=CloseReason.CONNECTION_BROKEN)
