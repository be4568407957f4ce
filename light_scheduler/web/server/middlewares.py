"""Rules for every answer: errors are problem documents, and security headers restrict browsers.

Faust passes `handler` to middlewares by keyword, so their second parameter must have that name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.problems import Problem, ProblemError, problem_response

log = logging.getLogger(__name__)

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    # The same as `frame-ancestors`, for browsers and scanners that do not support it.
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With no-referrer, browsers send `Origin: null` with the forms of a page, as if another site had sent them.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Every answer shows the state at this moment.
    "Cache-Control": "no-store",
}

TLS_HEADERS = {"Strict-Transport-Security": f"max-age={365 * 24 * 3_600}"}
"""From then on, browsers use only TLS for this host. It has no effect for IP addresses."""


@web.middleware
async def security_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add headers that stop browsers from sniffing types, framing, caching, and running what is served."""
    response = await handler(request)
    for name, value in headers_for(is_secure=request.secure).items():
        response.headers.setdefault(name, value)
    return response


def headers_for(*, is_secure: bool) -> Mapping[str, str]:
    """Return the headers of every answer; `is_secure` says whether it is sent over TLS."""
    return SECURITY_HEADERS | TLS_HEADERS if is_secure else SECURITY_HEADERS


@web.middleware
async def errors_as_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into a problem document. An unexpected one is logged, and its details are kept from the
    client."""
    try:
        return await handler(request)
    except (ProblemError, QueryError) as error:
        refused = refusal_of(error)
        return problem_response(refused.problem, refused.headers)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        detail = f"{request.method} {request.path}: {error.reason}"
        return problem_response(Problem(title=error.reason, status=error.status, detail=detail), allow)
    except Exception:
        log.exception("%s %s failed", request.method, request.rel_url)
        return problem_response(failure().problem)


def refusal_of(error: ProblemError | QueryError) -> ProblemError:
    """Return the response error for an error that the client caused."""
    if isinstance(error, ProblemError):
        return error
    return ProblemError(HTTPStatus.BAD_REQUEST, str(error), parameter=error.field)


def failure() -> ProblemError:
    """Return the response error for an unexpected error."""
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "The worker failed. Its log has the error.")


@web.middleware
async def own_pages_write(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse changes that a page of another site sends through the browser.

    A browser marks such requests in one of two headers; the first is only sent to secure addresses and to this machine.
    Programs send neither.
    """
    if request.method not in _READING:
        site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        if site not in _OWN_SITES or (origin is not None and origin.partition("://")[2] != request.host):
            raise ProblemError(
                HTTPStatus.FORBIDDEN, "A page of another site sent this request. Such requests cannot change anything."
            )
    return await handler(request)


@web.middleware
async def utf8_addresses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse addresses that are not percent-encoded UTF-8: aiohttp would read `%E9` as these three characters."""
    path, _, query = request.raw_path.partition("?")
    for part, text in (("path", path), ("query", query)):
        if not _is_utf8(text):
            raise QueryError(part, "must be percent-encoded UTF-8")
    return await handler(request)


def _is_utf8(text: str) -> bool:
    if "%" not in text and text.isascii():
        return True
    with suppress(UnicodeDecodeError):
        unquote_to_bytes(text.encode(errors="surrogateescape")).decode()
        return True
    return False


_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"none", "same-origin"})

MIDDLEWARES: tuple[Middleware, ...] = (security_headers, errors_as_problems)
"""Outermost first, so that problem documents get the headers too. Middlewares that refuse requests follow them."""
