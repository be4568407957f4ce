"""Which hosts a worker answers as: protection against DNS rebinding.

A page of another site can make its own name resolve to this machine. A browser then takes the worker for that site, and
lets the page read and change everything. But it still sends the site's name in `Host`, so a worker only answers to its
own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from light_scheduler.host.loopback import is_loopback
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.interfaces import Peers

_READING = ("GET", "HEAD")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[\w.~-]+)?\]|[^\s:/?#@\[\]]+)(?::\d*)?", re.ASCII)


def host_name(header: str) -> str | None:
    """Return the name or address in a Host header, normalised and without the port; None if the header is malformed."""
    match = _HOST.fullmatch(header)
    return None if match is None else normal(match[1].strip("[]"))


def normal(name: str) -> str:
    """Return the canonical form of a name or address."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name.rstrip(".").lower()


def known_hosts(peers: Peers, configured: Iterable[str]) -> Middleware:
    """Return a middleware that refuses requests for other hosts (421).

    Accepted are loopback names and addresses, the names in `configured`, the host of this worker's URL, and the address
    at which the request arrived. A page can only reach the worker by an address if it has the worker's own origin. A
    GET or HEAD of HTTP/1.0 needs no host.
    """
    names = frozenset(map(normal, configured))

    def is_known(name: str, request: web.Request) -> bool:
        return is_loopback(name) or name in names or name in (URL(peers.own_url).host, _arrived_at(request))

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = request.headers.getall("Host", [])
        if not headers and request.version < (1, 1) and request.method in _READING:
            return await handler(request)  # not from a browser
        name = host_name(headers[0]) if len(headers) == 1 else None
        if name is None:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "The request must have one Host header: a name or an address.")
        if not is_known(name, request):
            raise ProblemError(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"This worker does not answer requests for the host {name!r}. To allow it, add the name to the setting "
                "web_allowed_hosts.",
            )
        return await handler(request)

    return answered


def _arrived_at(request: web.Request) -> str | None:
    local = None if request.transport is None else request.transport.get_extra_info("sockname")
    return str(local[0]) if isinstance(local, tuple) else None
