"""How long brokers may take to answer. One that hangs takes connections and says nothing: it must not hold up the rest.

aiokafka has one time-out for everything, as long as the slowest answer may take. Here a connection has its own: when a
request on it is not answered in time, aiokafka closes it, asks others who leads by now, and sends again. A broker that
one client found silent is silent for all clients of the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import threading
import time
from typing import Any
from weakref import WeakSet

from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason

from light_scheduler.connection import Connection

CONNECT_S = 2.0
PRODUCE_ANSWER_S = 4.0
"""The answer to a batch waits for replicas, so its absence says nothing of the broker."""
FETCH_ANSWER_S = 2.0
HEARTBEAT_S = 2.0
AVOID_S = 10.0
"""How long a broker that did not answer is left out where another will do."""
RECONNECT_S = 2.0
"""How soon a broker that did not answer is connected to again: meanwhile a client makes no other connections."""

log = logging.getLogger(__name__)


class Promptness:
    """Bounds the answers of the clients of a worker, whatever thread they run in, and remembers who gave none."""

    def __init__(self) -> None:
        self._silent: dict[str, float] = {}  # host:port -> since when (monotonic, s)
        self._clients: WeakSet[AIOKafkaClient] = WeakSet()
        self._lock = threading.Lock()

    def arguments(self, connection: Connection) -> dict[str, Any]:
        """Return the arguments of an aiokafka client that begins with servers that answer."""
        return {**connection.aiokafka(), "bootstrap_servers": self.preferred(connection.bootstrap_servers)}

    def preferred(self, bootstrap_servers: str) -> list[str]:
        """Return the servers to begin with: those that did not fail to answer lately, or all."""
        servers = [server.strip() for server in bootstrap_servers.split(",")]
        return [server for server in servers if not self._is_silent(server, AVOID_S)] or servers

    def bound(
        self, client: AIOKafkaClient, answer_s: float, *, is_member: bool = False, is_telling: bool = False
    ) -> None:
        """Have a client that is not connected yet give up on brokers that do not answer.

        What a member of a group asks its coordinator waits for other members: that keeps the client's time-out. A
        client `is_telling` if what it asks is answered at once by every broker that is well.
        """
        waiting_s, connect, closed = client._request_timeout_ms / 1_000, client._get_conn, client._on_connection_closed
        client._request_timeout_ms = CONNECT_S * 1_000

        async def get_conn(node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, **options: Any) -> Any:
            broker, begun = client.cluster.broker_metadata(node_id), time.monotonic()
            if broker is not None and self._is_silent(_address(broker), RECONNECT_S):
                client.force_metadata_update()
                return None
            conn = await connect(node_id, group=group, **options)
            if conn is not None:
                waits = is_member and group is ConnectionGroup.COORDINATION
                conn._request_timeout = waiting_s if waits else answer_s
            elif broker is not None and time.monotonic() - begun >= CONNECT_S:
                self._found_silent(client, _address(broker))
            return conn

        def on_closed(conn: Any, reason: CloseReason) -> None:
            groups = {group for (_, group), each in client._conns.items() if each is conn}
            if is_telling and reason is CloseReason.CONNECTION_TIMEOUT and groups == {ConnectionGroup.DEFAULT}:
                self._found_silent(client, _address(conn))
            closed(conn, reason)

        def get_random_node() -> Any:
            nodes = list(client.cluster.brokers())
            answering = [node for node in nodes if not self._is_silent(_address(node), AVOID_S)]
            return random.choice(answering or nodes).nodeId if nodes else None

        client._get_conn, client._on_connection_closed = get_conn, on_closed
        client.get_random_node = get_random_node
        with self._lock:
            self._clients.add(client)

    def _is_silent(self, address: str, lately_s: float) -> bool:
        return time.monotonic() - self._silent.get(address, -math.inf) < lately_s

    def _found_silent(self, client: AIOKafkaClient, address: str) -> None:
        if len(client.cluster.brokers()) < 2:
            return  # there is no other to go to
        log.warning("broker %s does not answer", address)
        self._silent[address] = time.monotonic()
        with self._lock:
            clients = list(self._clients)
        for each in clients:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                each._loop.call_soon_threadsafe(_disconnect, each, address)


def _address(broker: Any) -> str:
    return f"{broker.host}:{broker.port}"


def _disconnect(client: AIOKafkaClient, address: str) -> None:
    for conn in list(client._conns.values()):
        if _address(conn) == address:
            conn.close(reason=CloseReason.CONNECTION_BROKEN)


def bound_heartbeats(consumer: AIOKafkaConsumer) -> None:
    """Have a started member of a group look for another coordinator when a heartbeat is not answered."""
    coordinator, client = consumer._coordinator, consumer._client
    beat = coordinator._do_heartbeat

    async def do_heartbeat() -> bool:
        node = coordinator.coordinator_id
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                return bool(await beat())
        except TimeoutError:
            log.warning("the coordinator of group %s does not answer heartbeats", coordinator.group_id)
        conn = client._conns.get((node, ConnectionGroup.COORDINATION))
        if conn is not None:
            conn.close()  # not for a time-out: the broker may be well, and wait for replicas
        coordinator.coordinator_dead()
        return False

    coordinator._do_heartbeat = do_heartbeat
