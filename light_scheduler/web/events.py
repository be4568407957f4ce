"""Server-sent events: sends the documents of a page again and again over one connection, while the page is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from .access.guard import IDENTITY, STILL_ADMITTED
from .forms.parameters import read_parameters
from .forms.problems import RETRY_AFTER_S, ProblemError
from .limits.shares import HOLDER, Shares
from .server.connection import SEND_S
from .server.middlewares import headers_for

EVERY_S = 2.0
MOST_STREAMS = 200
"""Number of streams of one worker. A lone holder may have half of them. A page that gets no stream polls the documents
instead."""

EVENTS_MEDIA_TYPE = "text/event-stream"

What = Literal["overview", "cluster"]
OVERVIEW: list[What] = ["overview"]


class EventsParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a stream."""

    of: Annotated[
        list[What],
        Meta(
            description="Documents to send, each as an event of this name; default: `overview`. Can be repeated. "
            "`cluster` needs a token for all tenants."
        ),
    ] = []


class EventHandlers:
    """One method per operation. `answers` map names to functions that return a document as JSON in one line."""

    def __init__(self, answers: dict[What, Callable[[web.Request], Awaitable[bytes]]]) -> None:
        self._answers = answers
        self._open = Shares(MOST_STREAMS)
        self._ending = asyncio.Event()

    async def events(self, request: web.Request) -> web.StreamResponse:
        wanted = dict.fromkeys(read_parameters(EventsParameters, request.query).of or OVERVIEW)
        if "cluster" in wanted and request[IDENTITY].tenants is not None:
            raise ProblemError(HTTPStatus.FORBIDDEN, "The state of the cluster needs a token for all tenants.")
        holder = HOLDER.get()
        if not self._open.has_room(holder):
            detail = "This worker sends too many streams of events already. Ask for the documents themselves."
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, detail, retry_after_s=RETRY_AFTER_S)
        response = web.StreamResponse(headers=headers_for(is_secure=request.secure))
        response.content_type = EVENTS_MEDIA_TYPE
        if request.method == "HEAD":
            return response  # send nothing after the header: it would be taken for the answer to another request
        with self._open.holding(holder):
            try:
                await self._send(request, response, [*wanted])
            except (ConnectionError, ProblemError):
                pass  # the reader is gone, or its token is no longer valid
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
        return response

    async def end(self, application: web.Application) -> None:
        """End all streams. Otherwise the server would wait for them when it stops."""
        del application
        self._ending.set()

    async def _send(self, request: web.Request, response: web.StreamResponse, wanted: list[What]) -> None:
        await response.prepare(request)
        while not self._ending.is_set():
            documents = await asyncio.gather(*(self._answers[what](request) for what in wanted))
            for what, document in zip(wanted, documents, strict=True):
                async with asyncio.timeout(SEND_S):
                    await response.write(b"event: %b\ndata: %b\n\n" % (what.encode(), document))
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._ending.wait()
            except TimeoutError:
                await request[STILL_ADMITTED]()
