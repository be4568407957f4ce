"""Headers that make a request conditional or repeatable. An operation that does not support one refuses it (400)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from light_scheduler.tables.views import QueryError

from .negotiation import IF_MATCH, IF_NONE_MATCH
from .responses import IDEMPOTENCY_KEY

_OF_METHOD: Mapping[str, Collection[str]] = {
    "PUT": (IF_MATCH, IF_NONE_MATCH),
    "DELETE": (IF_MATCH, IF_NONE_MATCH),
    "POST": (IF_MATCH, IF_NONE_MATCH, IDEMPOTENCY_KEY),
}
"""Headers that change what a request does, by method: ignoring one would do something else."""


def kept(taken: Mapping[Handler, Collection[str]]) -> Middleware:
    """Return a middleware that refuses requests with such a header (400), unless `taken` lists it for their handler."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        known = taken.get(request.match_info.handler)
        if known is not None:
            for name in _OF_METHOD.get(request.method, ()):
                if name in request.headers and name not in known:
                    raise QueryError(name, "has no effect on this request: leave it out")
        return await handler(request)

    return checked
