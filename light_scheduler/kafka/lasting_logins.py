"""Keeps clients outside of lanes logged in, so that no request is lost to an expired login.

These are readers and producers of single records. No transaction waits for them, so a connection is replaced when it is
used and most of its login time is over. (Connections of lanes are replaced ahead of time, see
`login_sessions.Renewals`.) If the login ends while a request waits at the broker behind others, the broker closes the
connection. A request that changes nothing is then sent again, once, over a new connection.
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
"""Maximum time to try a new connection while the login of the old one lasts. Requests wait for it."""

log = logging.getLogger(__name__)


def keep_logged_in(client: AIOKafkaClient) -> None:
    """Make a client, which must not be connected yet, lose no request to an expired login."""
    _Logins(client, client.close)


class _Logins:
    def __init__(self, client: AIOKafkaClient, close: Any) -> None:
        self._client = client
        self._close_client = close
        self._is_closed = False
        self._letting_go: set[asyncio.Task[None]] = set()
        self._use_until: dict[Place, float] = {}  # by the loop's clock: no new connection is tried before this time
        client._get_conn, client.close = self._get_conn, self._close

    async def _get_conn(
        self,
        node_id: Any,
        *,
        group: ConnectionGroup = ConnectionGroup.DEFAULT,
        no_hint: bool = False,  # noqa: ARG002 - aiokafka's parameter, which it does not use
    ) -> Any:
        place = Place(node_id, group)
        if (conn := self._lasting(place)) is not None:
            return conn
        async with self._client._get_conn_lock:
            return self._lasting(place) or await self._connected(place)

    def _lasting(self, place: Place) -> Any:
        """Return the connection in a place, if it can be used and need not be replaced now."""
        conn = self._client._conns.get(place)
        if conn is None or not conn.connected():
            return None
        if not _ends_soon(conn):
            return conn
        is_tried = asyncio.get_running_loop().time() < self._use_until.get(place, 0.0)
        return conn if is_tried and conn.left_s() > 0 else None

    async def _connected(self, place: Place) -> Any:
        """Return a new connection, or else the old one if its login lasts. None, as in aiokafka, if there is neither.

        While the old login lasts, a try takes at most `TRY_S` or half of its time left. The next try is after half of
        the time that is left then.
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
        """Send a request over a new connection. Raises KafkaError."""
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
    """Return whether a connection can still be used."""
    return conn is not None and conn.connected() and conn.left_s() > 0


def _ends_soon(conn: Any) -> bool:
    """Return whether most of a login's time is over."""
    if not isinstance(conn, LoggedIn) or conn.session is None:
        return False
    return conn.left_s() <= (1 - FIRST_USED) * conn.session.lasts_s
