"""A connection of the HTTP server: aiohttp's, with time-outs, and with problem documents for what is not HTTP."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError
from aiohttp.web_request import BaseRequest

from .middlewares import headers_for
from .problems import RETRY_AFTER_S, Problem, ProblemError, problem_response
from .shares import HOLDER, Shares

IDLE_S = 20.0
"""How long a connection waits for the header of a request to be complete, from its start or the answer before."""

LINGER_S = 2.0
"""How long the rest of a body is read that was refused, for the client to see why."""

SEND_S = 30.0
"""How long a client may take to read an answer."""

CLOSE_S = 5.0
"""How long a connection that is closed may take to send what it has left."""

MOST_UNSENT_BYTES = 64 << 20
"""Answers that clients have not read yet, of all connections."""

SMALL_ANSWER_BYTES = 16 << 10
"""Answers up to this size are sent in any case: health checks, and refusals."""

MOST_LINE_BYTES = 32 << 10
"""Of a request's first line: a cursor of a search through 1,000 partitions has half of that at most."""

MOST_HEADERS = 64
MOST_HEADER_BYTES = 64 << 10
"""Of one request, as long as its header is not complete."""

MOST_PIPELINED_BYTES = 512 << 10
"""Requests that are sent while another one is answered. Some of it may be the body of that one."""

_SHOWN = 200
_QUOTED = re.compile(r"(?:^|\s)b?['\"]")
_CLIENTS_FAULT = (web.RequestPayloadError, HttpProcessingError, ConnectionError)


class Answers:
    """Shared by all connections of a server: `unsent` counts the bytes of answers that are being sent."""

    def __init__(self) -> None:
        self.unsent = Shares(MOST_UNSENT_BYTES)


class Connection(web.RequestHandler):
    """One connection; `answers` are those of all."""

    def __init__(self, server: web.Server, answers: Answers, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=IDLE_S,
            lingering_time=LINGER_S,
            max_line_size=MOST_LINE_BYTES,
            max_headers=MOST_HEADERS,
            access_log=cast(Any, None),
        )
        self._answers = answers
        self._opened: asyncio.Transport | None = None
        self._closed_at: float | None = None
        self._unparsed = 0
        self._pipelined = 0
        self._idle_since = loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened = cast(asyncio.Transport, transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Parse what has come; aiohttp bounds lines and their number, but not what they come to."""
        waits_for_request = self._waiter is not None and not self._waiter.done()
        super().data_received(data)
        if self._messages:
            self._unparsed, self._pipelined = 0, 0 if waits_for_request else self._pipelined + len(data)
        elif waits_for_request:
            self._unparsed, self._pipelined = self._unparsed + len(data), 0
        if self._unparsed > MOST_HEADER_BYTES or self._pipelined > MOST_PIPELINED_BYTES:
            self.force_close()

    def idle_since(self) -> float | None:
        """Return since when it waits for a request (the loop's time); None: it does not."""
        at_work = self._request_in_progress or bool(self._messages)
        return None if at_work or self.transport is None else self._idle_since

    def end_if_stuck(self) -> None:
        """Abort it if it was closed some time ago and cannot get rid of what it has to send."""
        if self._opened is None or not self._opened.is_closing():
            return
        if self._closed_at is None:
            self._closed_at = self._loop.time()
        elif self._loop.time() - self._closed_at >= CLOSE_S:
            self._opened.abort()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what aiohttp could not parse with a problem document; it is the client's fault, and not logged."""
        if status != HTTPStatus.BAD_REQUEST or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        what = "its URL cannot be read" if isinstance(exc, InvalidURLError) else _without_quotes(message or "")
        detail = f"The request is not valid HTTP: {what}"
        response = self._problem(ProblemError(HTTPStatus.BAD_REQUEST, detail))
        response.force_close()
        return response

    def _problem(self, error: ProblemError) -> web.Response:
        is_secure = self._opened is not None and self._opened.get_extra_info("sslcontext") is not None
        return problem_response(error.problem, {**headers_for(is_secure=is_secure), **error.headers})

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log what is the worker's own fault, and not what clients send, or that they leave."""
        if isinstance(fault := kw.get("exc_info"), _CLIENTS_FAULT):
            self.logger.debug("the fault of a client: %s", type(fault).__name__)  # its text may repeat a token
        else:
            super().log_exception(*args, **kw)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; the second value says that the client is gone."""
        if isinstance(resp, web.HTTPException) and resp.status >= HTTPStatus.BAD_REQUEST:
            # Raised before any middleware runs.
            resp = problem_response(Problem(title=resp.reason, status=resp.status, detail=resp.reason))
        unsent, holder, size = self._answers.unsent, HOLDER.get(), resp.content_length or 0
        if size > SMALL_ANSWER_BYTES and not unsent.has_room(holder, size):
            resp, size = self._problem(_TOO_MUCH_UNSENT), 0
        with unsent.holding(holder, size):
            try:
                async with asyncio.timeout(SEND_S):
                    return await super().finish_response(request, resp, start_time)
            except TimeoutError:
                assert self._opened is not None
                self._opened.abort()
                return resp, True
            finally:
                self._idle_since = self._loop.time()


def _without_quotes(message: str) -> str:
    """Return what aiohttp says of a request without the bytes that it quotes: a token may be among them."""
    return " ".join(_QUOTED.split(message, maxsplit=1)[0].split())[:_SHOWN].rstrip(":")


_TOO_MUCH_UNSENT = ProblemError(
    HTTPStatus.TOO_MANY_REQUESTS,
    "Too many responses of this worker wait for clients to read them. Try again later.",
    retry_after_s=RETRY_AFTER_S,
)
