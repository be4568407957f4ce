"""HTTP client for requests to other workers, signed as a worker."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Self

import aiohttp
from aiohttp import web
from yarl import URL

from light_scheduler.access.peers import PEER_HEADER, signed
from light_scheduler.clock import Clock
from light_scheduler.web.interfaces import Access

SCOPE_HEADER = "Light-Scheduler-Scope"
LOCAL_SCOPE = "local"

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

MOST_CONNECTIONS = 32
"""Connections to each worker. A worker that hangs cannot use up the connections to others. All may be opened at once;
with many more, TLS handshakes alone would take longer than `CONNECT_TIMEOUT_S`."""

CONNECT_TIMEOUT_S = 1.0
"""How long a new connection may take, TLS included. Waiting for one of the existing connections is not limited by it:
that other requests are ahead does not mean that the worker is absent."""


class PeerClient:
    """Signs each request; `tls` is for workers at https addresses. An async context manager."""

    def __init__(self, access: Access, clock: Clock, tls: ssl.SSLContext) -> None:
        self._access = access
        self._clock = clock
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0, limit_per_host=MOST_CONNECTIONS),
            headers={SCOPE_HEADER: LOCAL_SCOPE},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def get(
        self, address: URL, total_s: float, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Ask a worker for its share of an answer, which must arrive within `total_s`. Raises TimeoutError,
        aiohttp.ClientError."""
        secret = self._access.book.peer_secret
        sent = dict(headers)
        if secret is not None:
            sent[PEER_HEADER] = signed(secret, authority_of(address), address.raw_path_qs, self._clock.now())
        timeout = aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S)
        return self._session.get(address, timeout=timeout, allow_redirects=False, headers=sent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._session.close()


PEER_CLIENT = web.AppKey("peer_client", PeerClient)
"""Key of the application's client for requests to other workers."""


def authority_of(url: URL) -> str:
    """Return host and port of a worker in the form that both sides sign."""
    return f"{url.host}:{url.port}"


def why_unreachable(error: Exception) -> str:
    """Return why a worker did not answer, worded to follow its address."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        return "cannot be reached: connection refused"  # aiohttp's text repeats the address
    return f"cannot be reached: {error}"
