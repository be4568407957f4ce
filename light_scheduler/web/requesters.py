"""Who sends a request, for the history; and naming them in a command, in a way that lanes can check."""

from __future__ import annotations

from aiohttp import web

from light_scheduler.model import Headers, Requester
from light_scheduler.wire.requester import requester_header

from .cluster import Access
from .guard import IDENTITY
from .requested import MakeHeaders


def requester_of(request: web.Request) -> Requester:
    """Return who sent a request, and from where."""
    return Requester(request[IDENTITY].name, request.remote or "")


def naming(request: web.Request, access: Access) -> MakeHeaders:
    """Return what makes the header of a record's value that names who sent a request, and from where."""
    requester = requester_of(request)
    secret = access.book.peer_secret

    def headers(value: bytes) -> Headers:
        return [] if secret is None else [requester_header(requester, value, secret)]

    return headers
