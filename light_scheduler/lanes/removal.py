"""Removing the schedules of tenants that were deleted."""

from __future__ import annotations

from itertools import islice

from light_scheduler.model import EventType
from light_scheduler.model.tenant_rules import NO_TENANTS, TENANT_DELETED
from light_scheduler.wire.state import identity

from .transaction import Transaction


class Removal:
    """Of one lane, over any number of cycles.

    It goes on where it stopped, so that it does not pass over what RocksDB has deleted and not compacted yet each time.
    A cycle may have failed, so a tenant is done with when a look from its beginning finds nothing.
    """

    def __init__(self) -> None:
        self._book = NO_TENANTS
        self._reached: dict[str, bytes] = {}
        self._done: set[str] = set()

    def advance(self, transaction: Transaction, limit: int) -> None:
        """Cancel at most `limit` schedules of tenants that were deleted."""
        book = transaction.tenants
        if book is not self._book:
            self._book, self._reached, self._done = book, {}, set()
        for tenant in sorted(book.deleted - self._done):
            limit -= self._advance(transaction, tenant, limit)
            if limit <= 0:
                return

    def _advance(self, transaction: Transaction, tenant: str, limit: int) -> int:
        prefix, overlay = identity(tenant, ""), transaction.overlay
        after = self._reached.get(tenant, b"")
        names = list(islice(overlay.stored(prefix, after), limit))
        if not names and after:
            names = list(islice(overlay.stored(prefix, b""), limit))
        if not names:
            self._done.add(tenant)
            return 0
        for name in names:
            if (entry := overlay.get(name)) is not None:  # else a bulk command has cancelled it in this cycle
                transaction.remove(name)
                transaction.history.record(EventType.CANCELLED, name, entry, TENANT_DELETED)
        self._reached[tenant] = names[-1]
        return len(names)
