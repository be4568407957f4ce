"""Requests to other workers about some tenants. They name the tenants, since the asking worker authenticates as
itself."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec

from light_scheduler.web.forms.problems import ProblemError

MOST_BYTES_ASKED = 7_000
"""Maximum size of such a request's path, bytes: HTTP servers refuse request lines above 8 KiB."""

Tenants = frozenset[str] | None
"""Tenants of a request; None: all."""


class TenantParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The tenants that a worker asks another one about: all or named ones. There is no default."""

    all_tenants: bool = False
    tenant: list[str] = []

    def tenants(self) -> Tenants:
        """The tenants asked for. Raises ProblemError."""
        if self.all_tenants == bool(self.tenant):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "Ask for all_tenants=true, or name tenants: tenant=NAME.")
        return None if self.all_tenants else frozenset(self.tenant)


def questions(path: str, tenants: Tenants, **parameters: str) -> Iterator[tuple[Tenants, str]]:
    """Yield the requests to other workers: a part of the tenants, and the path that asks for it with the same
    parameters. Without any tenants, there are no requests."""
    start = f"{path}?{urlencode(parameters)}&" if parameters else f"{path}?"
    if tenants is None:
        yield None, f"{start}all_tenants=true"
        return
    part: list[str] = []
    size = len(start)
    for tenant in sorted(tenants):
        length = len(_query([tenant])) + 1
        if part and size + length > MOST_BYTES_ASKED:
            yield frozenset(part), start + _query(part)
            part, size = [], len(start)
        part.append(tenant)
        size += length
    if part:
        yield frozenset(part), start + _query(part)


def _query(tenants: list[str]) -> str:
    return urlencode([("tenant", tenant) for tenant in tenants])
