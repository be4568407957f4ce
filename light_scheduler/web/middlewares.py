"""Rules for every answer: errors are problem documents, and headers tell browsers what they may do with it.

Faust hands middlewares on by keyword: their second parameter has to be called `handler`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from light_scheduler.tables.views import QueryError

from .problems import Problem, ProblemError, problem_response

log = logging.getLogger(__name__)

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    # As `frame-ancestors`, for browsers and scanners that do not know it.
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With no-referrer, browsers send `Origin: null` with the forms of a page, as if another site had sent them.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Everything served is a view of this moment.
    "Cache-Control": "no-store",
}

TLS_HEADERS = {"Strict-Transport-Security": f"max-age={365 * 24 * 3_600}"}
"""Browsers ask this host over TLS only from then on; addresses are not hosts to them."""


@web.middleware
async def security_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the headers that keep browsers from guessing, framing, caching and running what is served."""
    response = await handler(request)
    for name, value in headers_for(is_secure=request.secure).items():
        response.headers.setdefault(name, value)
    return response


def headers_for(*, is_secure: bool) -> Mapping[str, str]:
    """Return the headers of every answer; `is_secure` says whether it is sent over TLS."""
    return SECURITY_HEADERS | TLS_HEADERS if is_secure else SECURITY_HEADERS


@web.middleware
async def errors_as_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into a problem document; an unexpected one is logged and tells nothing to the client."""
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
    """Return what a client is told of an error that is its own."""
    if isinstance(error, ProblemError):
        return error
    return ProblemError(HTTPStatus.BAD_REQUEST, str(error), parameter=error.field)


def failure() -> ProblemError:
    """Return what a client is told of an error that nobody expected."""
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "The worker failed. Its log has the error.")


@web.middleware
async def own_pages_write(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what another site's page makes a browser send here to change something.

    A browser says so in one of two headers, the first of which it sends to secure addresses and this machine only.
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


_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"none", "same-origin"})

MIDDLEWARES: tuple[Middleware, ...] = (security_headers, errors_as_problems)
"""Outermost first: problem documents get the headers too. What refuses requests comes after them."""
