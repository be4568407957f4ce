"""Reads and changes delay rules over the HTTP API: what `light-scheduler delays` is made of."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.delays import DelayView
from light_scheduler.errors import ClientError

from .documents import DelayBody, DelayList
from .problems import Problem

TIMEOUT_S = 15.0
_PATH = "/api/v1/delays"


class DelayClient:
    """Asks any worker at `url`. An async context manager. Raises ClientError for what is refused or not answered."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def list(self) -> DelayList:
        """Return all rules and what the workers make of them."""
        return msgspec.json.decode(await self._ask("GET", _PATH), type=DelayList)

    async def put(self, name: str, source: str, delay: str, target: str) -> DelayView:
        """Add a rule, or replace the one of its name."""
        body = msgspec.json.encode(DelayBody(source=source, delay=delay, target=target))
        return msgspec.json.decode(await self._ask("PUT", _path_of(name), data=body), type=DelayView)

    async def remove(self, name: str) -> None:
        """Remove a rule."""
        await self._ask("DELETE", _path_of(name))

    async def _ask(self, method: str, path: str, **request: Any) -> bytes:
        assert self._session is not None
        try:
            async with self._session.request(method, URL(self._url + path, encoded=True), **request) as response:
                body = await response.read()
        except TimeoutError:
            raise ClientError(f"{self._url} did not answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise ClientError(f"cannot reach a worker at {self._url}: {error}") from error
        if response.status < HTTPStatus.BAD_REQUEST:
            return body
        try:
            detail = msgspec.json.decode(body, type=Problem).detail
        except msgspec.MsgspecError:
            detail = f"answered {response.status}, but not like light-scheduler"
        raise ClientError(f"{self._url}: {detail}")


def _path_of(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
