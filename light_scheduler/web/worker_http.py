"""Asking a worker over HTTP, and telling why there is no answer: what the command line's clients have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import aiohttp
from yarl import URL

from light_scheduler.errors import ClientError

TIMEOUT_S = 15.0

Parameters = Mapping[str, str | Sequence[str]]


class WorkerHttp:
    """Asks any worker at `url`. An async context manager."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def ask(
        self, method: str, path: str, parameters: Parameters | None = None, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Return status and body. The path is encoded: an id such as ".." or "a/b" reaches the worker as it is.

        Raises ClientError if nobody answers.
        """
        assert self._session is not None
        try:
            url = URL(self.url + path, encoded=True).with_query(parameters)
            async with self._session.request(method, url, data=body) as response:
                return response.status, await response.read()
        except TimeoutError:
            raise ClientError(f"{self.url} did not answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise ClientError(f"cannot reach a worker at {self.url}: {error}") from error
