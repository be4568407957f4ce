"""Requests to a worker over HTTP, and the reasons why one fails: the common part of the command line's clients.

It uses the standard library's client: importing aiohttp would make commands too slow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from threading import Thread
from typing import Self, TypeVar
from urllib.parse import urlencode

import msgspec

from light_scheduler.connection import HttpSecurity, Secret
from light_scheduler.connection.http_security import NO_TLS
from light_scheduler.connection.urls import without_login
from light_scheduler.connection.worker_connection import TIMEOUT_S, WorkerAddress, no_answer
from light_scheduler.errors import ClientError
from light_scheduler.web.forms.problems import Problem

T = TypeVar("T")

Parameters = Mapping[str, str | Sequence[str]]

_SOURCES = "--token-file or LIGHT_SCHEDULER_TOKEN"

log = logging.getLogger(__name__)


class WorkerHttp:
    """Sends requests to any worker at `url`, with a token if one is given. An async context manager."""

    def __init__(self, url: str, token: Secret | None = None, security: HttpSecurity = NO_TLS) -> None:
        self.url = without_login(url).rstrip("/")
        self._address = WorkerAddress(self.url, token, security)
        self._has_token = token is not None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Does nothing: no connection stays open between requests."""

    async def ask(
        self, method: str, path: str, parameters: Parameters | None = None, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Return status and body. The path is encoded: an id such as ".." or "a/b" reaches the worker unchanged.

        Raises ClientError if there is no answer, or if the worker needs a token, or another one.
        """
        if not self._address.is_valid:
            raise ClientError(f"cannot ask the worker at {self.url}: the address must be http[s]://HOST:PORT")
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        log.debug("%s %s%s%s", method, self.url, path, query)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, answer = await _in_thread(lambda: self._address.exchange(method, path + query, body))
        except TimeoutError:
            raise no_answer(self.url, TIMEOUT_S) from None
        log.debug("answer: status %d, %d bytes", status, len(answer))
        if status == HTTPStatus.UNAUTHORIZED:
            raise ClientError(f"{self.url}: {self._unauthorized(answer)} with {_SOURCES}")
        return status, answer

    def _unauthorized(self, answer: bytes) -> str:
        if not self._has_token:
            return "the worker needs a token: give one"
        try:
            return f"{msgspec.json.decode(answer, type=Problem).detail} Give another one"
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return "the token is refused: give another one"


async def _in_thread(call: Callable[[], T]) -> T:
    """Return the result of a blocking call. Unlike a thread of the loop's executor, its thread does not keep the
    process alive, so Ctrl-C ends it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(give: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so the result is not needed
            loop.call_soon_threadsafe(lambda: None if answer.done() else give())

    def run() -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 (raised where the answer is waited for)
            failure = error
            settle(lambda: answer.set_exception(failure))
        else:
            settle(lambda: answer.set_result(result))

    Thread(target=run, daemon=True).start()
    return await answer
