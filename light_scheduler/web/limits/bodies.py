"""Bodies of requests: how many bytes of them a worker holds, and how long it waits for them.

A body is read before its handler runs, unless the handler reads it piece by piece. Its bytes are reserved before
reading and until the answer exists. So bodies that never end cost at most `MOST_BYTES`, or three of the largest bodies
if that is more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError

from .shares import HOLDER, Shares

MOST_BYTES = 96 << 20
"""Bytes of bodies that a worker holds at a time. One tenant may have half of it. It is raised to three of the largest
bodies: enough for two of a lone tenant, then one of another."""

TIMEOUT_S = 10.0
LEAST_BYTES_PER_S = 256 << 10
"""Time-out of a body: `TIMEOUT_S`, plus its size at this rate."""


STREAM_BYTES = 4 << 20
"""Memory reserved for a body that its handler reads piece by piece."""


class Bodies:
    """`read` is a middleware. Handlers in `streaming` read the body themselves; `STREAM_BYTES` are reserved for
    each."""

    def __init__(self, largest: int, streaming: Collection[Handler] = ()) -> None:
        self._reserved = Shares(max(MOST_BYTES, 3 * largest))
        self._streaming = frozenset(streaming)

    @web.middleware
    async def read(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Read the body, so that `request.read()` returns at once. Raises ProblemError."""
        if not request.can_read_body:
            return await handler(request)
        if request.match_info.handler in self._streaming:
            with self._holding(STREAM_BYTES):
                return await handler(request)
        size = _most_bytes(request)
        with self._holding(size):
            await _read(request, TIMEOUT_S + size / LEAST_BYTES_PER_S)
            return await handler(request)

    def _holding(self, size: int) -> AbstractContextManager[None]:
        if not self._reserved.has_room(HOLDER.get(), size):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "This worker is reading too many request bodies. Try again later.",
                retry_after_s=RETRY_AFTER_S,
            )
        return self._reserved.holding(HOLDER.get(), size)


def _most_bytes(request: web.Request) -> int:
    """Return the largest size that a body can have: its Content-Length, unless that is missing or the body is
    compressed."""
    largest = request.client_max_size
    if request.content_length is None or "Content-Encoding" in request.headers:
        return largest
    if request.content_length > largest:
        raise web.HTTPRequestEntityTooLarge(largest, request.content_length)
    return request.content_length


async def _read(request: web.Request, timeout_s: float) -> None:
    with unreadable_as_problems():
        try:
            async with asyncio.timeout(timeout_s):
                await request.read()
        except TimeoutError:
            detail = f"The body did not arrive within {timeout_s:.0f} s."
            raise ProblemError(HTTPStatus.REQUEST_TIMEOUT, detail) from None


@contextmanager
def unreadable_as_problems() -> Iterator[None]:
    """Convert errors of reading a body to ProblemError."""
    try:
        yield
    except OSError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "The connection ended before the body did.") from None
    except (web.RequestPayloadError, HttpProcessingError) as error:
        reason = " ".join(str(error).split())
        raise ProblemError(HTTPStatus.BAD_REQUEST, f"The body cannot be read: {reason}") from None
