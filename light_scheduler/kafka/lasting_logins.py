"""Clients outside of lanes, whose requests no expired login is to lose: readers, and producers of single records.

Nobody waits for them in a transaction, so a connection is replaced when it is used (lanes: `login_sessions.Renewals`,
ahead of time): a request that comes when most of the login's time is over goes over a new one. Should the login end
while a request waits at the broker behind others, the broker closes the connection. Then the request is sent again,
once and over a new connection, if it only asks.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaConnectionError, KafkaError, StaleMetadata

from .logged_in import LoggedIn, Place, connect, let_go, replace
from .login_sessions import FIRST_USED, RETRY_S

TRY_S = 2.0
"""How long another connection is tried at most while the login of the old one lasts: requests wait for that."""

log = logging.getLogger(__name__)


def keep_logged_in(client: AIOKafkaClient) -> None:
    """Have a client that is not connected yet lose no question to a login that has ended."""
    _Logins(client, client.close)


class _Logins:
    def __init__(self, client: AIOKafkaClient, close: Any) -> None:
        self._client = client
        self._close_client = close
        self._is_closed = False
        self._letting_go: set[asyncio.Task[None]] = set()
        self._use_until: dict[Place, float] = {}  # by the loop's clock: no other connection is tried before
        client._get_conn, client.close = self._get_conn, self._close

    async def _get_conn(
        self,
        node_id: Any,
        *,
        group: ConnectionGroup = ConnectionGroup.DEFAULT,
        no_hint: bool = False,  # noqa: ARG002 - of aiokafka's, which does not use it
    ) -> Any:
        place = Place(node_id, group)
        if (conn := self._lasting(place)) is not None:
            return conn
        async with self._client._get_conn_lock:
            return self._lasting(place) or await self._connected(place)

    def _lasting(self, place: Place) -> Any:
        """Return the connection in a place, if it can be used and none is to be tried that takes its place."""
        conn = self._client._conns.get(place)
        if conn is None or not conn.connected():
            return None
        if not _ends_soon(conn):
            return conn
        is_tried = asyncio.get_running_loop().time() < self._use_until.get(place, 0.0)
        return conn if is_tried and conn.left_s() > 0 else None

    async def _connected(self, place: Place) -> Any:
        """Return a new connection; None, as aiokafka does, if there is none, nor an old one whose login lasts.

        A try takes `TRY_S` or half of what is left of that login at most; the next one waits for half of what is left
        then.
        """
        client = self._client
        broker = client.cluster.broker_metadata(place.node)
        old = client._conns.get(place)
        try:
            if broker is None:
                raise StaleMetadata(f"broker {place.node} is not among those that Kafka names")
            async with asyncio.timeout(min(TRY_S, old.left_s() / 2) if _lasts(old) else None):
                new = await connect(client, broker.host, broker.port)
        except (KafkaError, OSError) as error:
            if _lasts(old):
                self._use_until[place] = asyncio.get_running_loop().time() + max(old.left_s() / 2, RETRY_S)
                return old
            log.error("cannot connect to broker %s: %s", place.node, str(error) or repr(error))
            client.force_metadata_update()
            return None
        new.ask_again = partial(self._ask_again, place)
        if old is not None and old.connected():
            task = asyncio.create_task(let_go(client, replace(client, place, old, new), old), name="logged in anew")
            self._letting_go.add(task)
            task.add_done_callback(self._letting_go.discard)
        else:
            client._conns[place] = new
        return new

    async def _ask_again(self, place: Place, request: Any) -> Any:
        """Raises KafkaError."""
        conn = None if self._is_closed else await self._get_conn(place.node, group=place.group)
        if conn is None:
            raise KafkaConnectionError(f"the login to broker {place.node} has ended, and there is no other connection")
        return await conn.send_once(request)

    async def _close(self) -> None:
        self._is_closed = True
        for task in self._letting_go:
            task.cancel()
        if self._letting_go:
            await asyncio.wait(self._letting_go)
        await self._close_client()


def _lasts(conn: Any) -> bool:
    """Return whether a connection that is to be replaced can be used for the moment."""
    return conn is not None and conn.connected() and conn.left_s() > 0


def _ends_soon(conn: Any) -> bool:
    """Return whether most of the time of a login is over."""
    if not isinstance(conn, LoggedIn) or conn.session is None:
        return False
    return conn.left_s() <= (1 - FIRST_USED) * conn.session.lasts_s
