"""The sender of a request, for the history, and the signed header that names the sender in a command."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from light_scheduler.model import Headers, Requester
from light_scheduler.web.interfaces import Access
from light_scheduler.wire.requester import requester_header

from .guard import IDENTITY

MakeHeaders = Callable[[bytes], Headers]
"""Makes headers for a record, given its value."""


def requester_of(request: web.Request) -> Requester:
    """Return the name and the address of a request's sender."""
    return Requester(request[IDENTITY].name, request.remote or "")


def naming(request: web.Request, access: Access) -> MakeHeaders:
    """Return a function from a record's value to signed headers that name the sender and the address of a request."""
    requester = requester_of(request)
    secret = access.book.peer_secret

    def headers(value: bytes) -> Headers:
        return [] if secret is None else [requester_header(requester, value, secret)]

    return headers
