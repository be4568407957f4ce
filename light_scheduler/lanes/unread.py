"""The commands of a lane that later cycles read, as far as they matter for lending tokens of rates.

Usually the next cycle reads them, and a look at the first is enough. If that waits for a schema, it may be there for
hours, and only tenants that may have sent some of those that wait are to lend nothing of what they earn meanwhile.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from light_scheduler.wire import Dialect

from .incoming import Incoming

MOST_LOOKED_AT = 1_000


class _Found(NamedTuple):
    """When the first command of each tenant was recorded, and the first of those that may be any tenant's."""

    by_tenant: dict[str, int]
    others: int | None


class Unread:
    """Of one cycle, when it has taken its commands. Instants are UTC epoch ms."""

    def __init__(self, incoming: Incoming, dialect: Dialect) -> None:
        self._incoming = incoming
        self._dialect = dialect

    def since(self, tenant: str) -> int | None:
        """Return when the first command was recorded that may be of a tenant; None: there is none."""
        return self._found.by_tenant.get(tenant, self._found.others)

    @cached_property
    def _found(self) -> _Found:
        intake, is_held = self._incoming.intake, self._incoming.readable.is_held
        by_tenant: dict[str, int] = {}
        last: int | None = None
        for number, record in enumerate(intake.waiting()):
            last = record.timestamp
            if not is_held or number >= MOST_LOOKED_AT:
                return _Found(by_tenant, last)
            envelope = self._dialect.salvage(record)
            if envelope.id is None:  # nor is its tenant known
                return _Found(by_tenant, last)
            by_tenant.setdefault(envelope.tenant, last)
        return _Found(by_tenant, None if intake.has_all else last)
