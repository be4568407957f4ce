"""OAUTHBEARER: tokens that a client gets for its own credentials (RFC 6749, section 4.4).

A token is used for all connections until little of its life is left. Kafka closes a connection when the token that it
was made with expires, if the broker is set up so; the clients connect anew, with a new token.
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
    """No token is issued for these credentials. One of aiokafka's errors: its clients try again after those only."""


class TokenServerFailed(KafkaConnectionError):  # type: ignore[misc]
    """No token was issued, and the next attempt may get one."""


class _Answer(msgspec.Struct):
    """The token server's answer: a token and its lifetime, or an error."""

    access_token: str | None = None
    expires_in: float | None = None
    error: str | None = None
    error_description: str | None = None


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Gets tokens from the server that the settings name, from any event loop; one is asked for at a time."""

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
        """Ask for a token, for those who wait for the renewal too."""
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
            if not renewal.done():  # this task was cancelled: one of those who wait asks
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
    """Trust the system's authorities, and the one of the settings: the server may be a public one or one's own."""
    context = ssl.create_default_context()
    if security.ssl_ca is not None:
        context.load_verify_locations(security.ssl_ca)
    return context


def _cause(error: aiohttp.ClientError) -> object:
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error


def _read(url: str, status: int, body: bytes) -> tuple[str, float]:
    try:
        answer = msgspec.json.decode(body, type=_Answer, strict=False)  # some send numbers as text
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
