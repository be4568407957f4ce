"""Cursors as clients see them: encrypted, if requests need a token.

A cursor contains offsets of topics that all tenants share, and how fast these grow shows how active other tenants are.
Workers seal cursors with their common secret, so any worker can continue from one, even after a restart.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Literal

from aiohttp import web
from msgspec import UNSET, UnsetType

from light_scheduler.access.sealing import seal, unseal
from light_scheduler.tables.views import QueryError
from light_scheduler.web.interfaces import Access

Of = Literal["schedules", "history", "changes", "dead-letters"]
"""The list that a cursor belongs to."""


class Cursors:
    """Seals and opens cursors, which are base64url without "=". If requests need no token, cursors are left as they
    are."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def sealed(self, of: Of, cursor: str | None) -> str | None:
        """Return a cursor in the form that clients get; None if there is none."""
        secret = self._access.book.peer_secret
        if cursor is None or secret is None or not self._are_sealed:
            return cursor
        return seal(secret, of, urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))

    def opened(self, of: Of, given: str | UnsetType) -> str | UnsetType:
        """Return the plain cursor of a sealed one. Raises QueryError."""
        secret = self._access.book.peer_secret
        if given is UNSET or secret is None:
            return given
        raw = unseal(secret, of, given)
        if raw is not None:
            return urlsafe_b64encode(raw).decode().rstrip("=")
        if self._are_sealed:
            raise QueryError("cursor", "is not a cursor of this list: pass next_cursor unchanged")
        return given

    @property
    def _are_sealed(self) -> bool:
        return self._access.book.is_set_up or self._access.oidc is not None


def path_with(request: web.Request, cursor: str | None) -> str:
    """Return the path and query of a request to forward to other workers, with the plain cursor: workers of earlier
    versions do not know sealed ones."""
    return request.rel_url.raw_path_qs if cursor is None else str(request.rel_url.update_query(cursor=cursor))
