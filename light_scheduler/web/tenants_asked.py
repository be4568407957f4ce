"""Questions to other workers about some tenants: the worker that asks names them, since it is asked as itself."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec

from .problems import ProblemError

MOST_BYTES_ASKED = 7_000
"""Of one question to another worker: an HTTP server takes no request line above 8 KiB."""

Tenants = frozenset[str] | None
"""Those that a request is about; None: all."""


class TenantParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a worker asks another one about: all tenants, or those that are named. There is no default."""

    all_tenants: bool = False
    tenant: list[str] = []

    def tenants(self) -> Tenants:
        """Raises ProblemError."""
        if self.all_tenants == bool(self.tenant):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "Ask for all_tenants=true, or name tenants: tenant=NAME.")
        return None if self.all_tenants else frozenset(self.tenant)


def questions(path: str, tenants: Tenants, **parameters: str) -> Iterator[tuple[Tenants, str]]:
    """Yield what other workers are asked: parts of the tenants, and the path of each, with the same parameters. Nobody
    is asked about none."""
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
