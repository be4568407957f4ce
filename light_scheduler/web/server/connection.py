"""A connection of the HTTP server: aiohttp's, with time-outs, and with problem documents for requests that are not
valid HTTP."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError
from aiohttp.web_request import BaseRequest

from light_scheduler.web.forms.problems import RETRY_AFTER_S, Problem, ProblemError, problem_response
from light_scheduler.web.limits.shares import HOLDER, Shares

from .middlewares import headers_for

IDLE_S = 20.0
"""How long a connection waits for a complete request header, from its start or from the answer before."""

LINGER_S = 2.0
"""How long the rest of a refused body is read, so that the client receives the answer."""

SEND_S = 30.0
"""How long a client may take to read an answer."""

CLOSE_S = 5.0
"""How long a closing connection may take to send its remaining bytes."""

MOST_UNSENT_BYTES = 64 << 20
"""Bytes of answers that clients have not read yet, over all connections."""

SMALL_ANSWER_BYTES = 16 << 10
"""Answers up to this size (bytes) are always sent: health checks and refusals."""

MOST_LINE_BYTES = 32 << 10
"""Maximum length of a request's first line, bytes. The cursor of a search through 1,000 partitions takes at most half
of it."""

MOST_HEADERS = 64
MOST_HEADER_BYTES = 64 << 10
"""Maximum bytes of a request until its header is complete."""

MOST_PIPELINED_BYTES = 512 << 10
"""Maximum bytes that arrive while another request is answered. Some of them may belong to that request's body."""

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
        """Parse received bytes, and bound their total: aiohttp only bounds the length and number of header lines."""
        waits_for_request = self._waiter is not None and not self._waiter.done()
        super().data_received(data)
        if self._messages:
            self._unparsed, self._pipelined = 0, 0 if waits_for_request else self._pipelined + len(data)
        elif waits_for_request:
            self._unparsed, self._pipelined = self._unparsed + len(data), 0
        if self._unparsed > MOST_HEADER_BYTES or self._pipelined > MOST_PIPELINED_BYTES:
            self.force_close()

    def idle_since(self) -> float | None:
        """Return since when the connection waits for a request (the loop's time); None if it does not wait."""
        at_work = self._request_in_progress or bool(self._messages)
        return None if at_work or self.transport is None else self._idle_since

    def end_if_stuck(self) -> None:
        """Abort the connection if it is closing and has not sent its remaining bytes within `CLOSE_S`."""
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
        """Answer a request that aiohttp could not parse with a problem document. It is the client's fault, so it is not
        logged."""
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
        """Log the worker's own faults only, not bad requests or clients that disconnect."""
        if isinstance(fault := kw.get("exc_info"), _CLIENTS_FAULT):
            self.logger.debug("the fault of a client: %s", type(fault).__name__)  # its text may repeat a token
        else:
            super().log_exception(*args, **kw)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer. The second value is whether the client is gone."""
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
    """Return aiohttp's error message without the bytes that it quotes from the request: they may contain a token."""
    return " ".join(_QUOTED.split(message, maxsplit=1)[0].split())[:_SHOWN].rstrip(":")


_TOO_MUCH_UNSENT = ProblemError(
    HTTPStatus.TOO_MANY_REQUESTS,
    "Too many responses of this worker wait for clients to read them. Try again later.",
    retry_after_s=RETRY_AFTER_S,
)
