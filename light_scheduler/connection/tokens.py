"""OAUTHBEARER: tokens for a client's own credentials (RFC 6749, section 4.4).

A token is used for all connections until it is about to expire. If the broker is configured to do so, it closes a
connection when its token expires; clients then reconnect with a new token.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import aiohttp
import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from .logins import client_login
from .security import KafkaSecurity

TIMEOUT_S = 10.0
USED_OF_LIFE = 0.8
DEFAULT_LIFE_S = 300.0


class TokenRefused(KafkaConnectionError):  # type: ignore[misc]  # aiokafka is not typed
    """No token is issued for these credentials. It is one of aiokafka's errors, since its clients only retry after
    those."""


class TokenServerFailed(KafkaConnectionError):  # type: ignore[misc]
    """No token was issued, but the next attempt may succeed."""


class _Answer(msgspec.Struct):
    """The token server's answer: a token and its lifetime, or an error."""

    access_token: str | None = None
    expires_in: float | None = None
    error: str | None = None
    error_description: str | None = None


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Gets tokens from the server in the settings, from any event loop. Only one request runs at a time."""

    def __init__(self, security: KafkaSecurity, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._security = security
        self._monotonic = monotonic
        self._token = ""
        self._use_until = 0.0
        self._renewal: Future[str | None] | None = None
        self._lock = threading.Lock()

    async def token(self) -> str:
        """Return a token. Raises TokenRefused, TokenServerFailed."""
        while self._monotonic() >= self._use_until:
            mine: Future[str | None] = Future()
            with self._lock:
                awaited = self._renewal
                self._renewal = awaited or mine
            if awaited is None:
                return await self._renew(mine)
            token = await asyncio.shield(asyncio.wrap_future(awaited))
            if token is not None:
                return token
        return self._token

    async def _renew(self, renewal: Future[str | None]) -> str:
        """Request a token, also for tasks that wait for the same renewal."""
        asked_at = self._monotonic()
        try:
            token, life_s = await self._ask()
            self._token, self._use_until = token, asked_at + USED_OF_LIFE * life_s
            renewal.set_result(token)
            return token
        except Exception as error:
            renewal.set_exception(error)
            raise
        finally:
            self._renewal = None
            if not renewal.done():  # this task was cancelled: a waiting task makes the request
                renewal.set_result(None)

    async def _ask(self) -> tuple[str, float]:
        security, url = self._security, self._security.sasl_oauth_token_url or ""
        form = {"grant_type": "client_credentials"}
        if security.sasl_oauth_scope:
            form["scope"] = security.sasl_oauth_scope
        login = aiohttp.encode_basic_auth(*client_login(security), "utf-8")
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
                session.post(
                    url,
                    data=form,
                    headers={"Authorization": login},
                    ssl=_trust(security),
                    allow_redirects=False,
                ) as response,
            ):
                status, body = response.status, await response.read()
        except TimeoutError:
            raise TokenServerFailed(f"sasl_oauth_token_url {url} does not answer within {TIMEOUT_S:g} s") from None
        except aiohttp.ClientError as error:
            raise TokenServerFailed(f"sasl_oauth_token_url {url} cannot be reached: {_cause(error)}") from None
        return _read(url, status, body)


def _trust(security: KafkaSecurity) -> ssl.SSLContext:
    """Trust the system's authorities and the one in the settings: the server may be public or your own."""
    context = ssl.create_default_context()
    if security.ssl_ca is not None:
        context.load_verify_locations(security.ssl_ca)
    return context


def _cause(error: aiohttp.ClientError) -> object:
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error


def _read(url: str, status: int, body: bytes) -> tuple[str, float]:
    try:
        answer = msgspec.json.decode(body, type=_Answer, strict=False)  # some servers send numbers as text
    except msgspec.MsgspecError:
        answer = _Answer()
    if status == 200 and answer.access_token:
        return answer.access_token, answer.expires_in or DEFAULT_LIFE_S
    why = ": ".join(filter(None, (answer.error, answer.error_description)))
    if status in (400, 401, 403):
        raise TokenRefused(
            f"{url} issues no token ({why or f'HTTP status {status}'}): check sasl_oauth_client_id, "
            "sasl_oauth_client_secret and sasl_oauth_scope"
        )
    raise TokenServerFailed(f"{url} issues no token (HTTP status {status}): check sasl_oauth_token_url")
