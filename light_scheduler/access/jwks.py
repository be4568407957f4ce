"""The public keys of an identity provider, refreshed regularly."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec

from light_scheduler.errors import SchedulerError

FRESH_S = 300.0
"""How long keys are used before they are refreshed. This also ends the use of keys that the provider has withdrawn."""

STALE_S = 3_600.0
"""How long keys are used while the provider does not answer."""

RETRY_S = 10.0
"""Minimum time between two refreshes caused by tokens, so that tokens with made-up key ids cannot cause more."""

TIMEOUT_S = 5.0

PATIENCE_S = 0.5
"""How long a refresh may delay tokens with known keys. After that it continues in the background."""

MOST_BYTES = 1 << 20

log = logging.getLogger(__name__)

Key = Mapping[str, Any]


class KeysUnavailable(SchedulerError):
    """The keys of the identity provider cannot be read."""

    retriable = True


class KeySet:
    """Keys by id. `monotonic` is in seconds. `close` it at the end."""

    def __init__(self, issuer: str, jwks_url: str | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._monotonic = monotonic
        self._keys: dict[str | None, list[Key]] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def keys(self, id: str | None) -> Sequence[Key]:
        """Return the keys with an id (None: keys without one). Raises KeysUnavailable."""
        are_usable = id in self._keys and self._is_younger(self._read_at, STALE_S)
        if not are_usable or not self._is_younger(self._read_at, FRESH_S):
            await self._read_again(PATIENCE_S if are_usable else None)
        if not self._is_younger(self._read_at, STALE_S):
            raise KeysUnavailable(f"the keys of {self._issuer} cannot be read: see the log of the worker")
        return self._keys.get(id, ())

    async def close(self) -> None:
        """Stop reading."""
        if (reading := self._reading) is not None:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read_again(self, patience_s: float | None) -> None:
        """Start to refresh the keys, unless that was tried recently. Wait for it for up to `patience_s` in total; None:
        until it ends."""
        if self._reading is None and not self._is_younger(self._tried_at, RETRY_S):
            self._tried_at = self._monotonic()
            self._reading = asyncio.create_task(self._read())
        if self._reading is not None and self._tried_at is not None:
            spent_s = self._monotonic() - self._tried_at
            await asyncio.wait({self._reading}, timeout=None if patience_s is None else max(0.0, patience_s - spent_s))

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                self._keys = _usable(await self._fetched())
            self._read_at = self._monotonic()
        except (TimeoutError, aiohttp.ClientError, msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            log.warning("the keys of %s cannot be read: %s", self._issuer, error or type(error).__name__)
        finally:
            self._reading = None

    def _is_younger(self, at: float | None, seconds: float) -> bool:
        return at is not None and self._monotonic() - at < seconds

    async def _fetched(self) -> Any:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            url = self._jwks_url
            if url is None:
                place = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
                document = await _document(session, place)
                if document.get("issuer") != self._issuer:
                    raise ValueError(f"{place} is of the issuer {document.get('issuer')!r}")
                url = str(document.get("jwks_uri"))
                if url.partition(":")[0] != self._issuer.partition(":")[0]:
                    raise ValueError(f"{place} names keys at {url}, which is less secure than the issuer's address")
            return (await _document(session, url)).get("keys")


async def _document(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url, allow_redirects=False, raise_for_status=True) as response:
        if response.status != HTTPStatus.OK:
            raise ValueError(f"{url} answers {response.status}")
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError(f"{url} sends more than {MOST_BYTES} bytes")
    return msgspec.json.decode(body, type=dict[str, Any])


def _usable(keys: Any) -> dict[str | None, list[Key]]:
    """Return the signature keys by id. Raises ValueError if there are none."""
    found: dict[str | None, list[Key]] = {}
    for key in keys if isinstance(keys, list) else []:
        if isinstance(key, dict) and key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig":
            id = key.get("kid")
            found.setdefault(id if isinstance(id, str) else None, []).append(key)
    if not found:
        raise ValueError("there is no public key for signatures")
    return found
