"""Removes the schedules of deleted tenants."""

from __future__ import annotations

from itertools import islice

from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import EventType
from light_scheduler.model.tenant_rules import NO_TENANTS, TENANT_DELETED, TenantBook
from light_scheduler.wire.state import identity


class Removal:
    """The removal in one lane, over any number of cycles.

    It continues where it stopped, so as not to skip uncompacted RocksDB tombstones again and again. Since a cycle may
    have failed, a tenant is done only when a scan from its beginning finds nothing.
    """

    def __init__(self) -> None:
        self._book = NO_TENANTS
        self._reached: dict[str, bytes] = {}
        self._done: set[str] = set()

    def is_over(self, book: TenantBook) -> bool:
        """Return whether nothing is left of the tenants that `book` says are deleted."""
        return not book.deleted or (book is self._book and book.deleted <= self._done)

    def advance(self, transaction: Transaction, limit: int, max_bytes: int) -> None:
        """Cancel schedules of deleted tenants: at most `limit`, or `max_bytes` of payload."""
        book = transaction.tenants
        if book is not self._book:
            self._book, self._reached, self._done = book, {}, set()
        for tenant in sorted(book.deleted - self._done):
            removed, size = self._advance(transaction, tenant, limit, max_bytes)
            limit, max_bytes = limit - removed, max_bytes - size
            if limit <= 0 or max_bytes < 0:
                return

    def _advance(self, transaction: Transaction, tenant: str, limit: int, max_bytes: int) -> tuple[int, int]:
        prefix, overlay = identity(tenant, ""), transaction.overlay
        after = self._reached.get(tenant, b"")
        names = list(islice(overlay.stored(prefix, after), limit))
        if not names and after:
            names = list(islice(overlay.stored(prefix, b""), limit))
        if not names:
            self._done.add(tenant)
            return 0, 0
        size = 0
        for removed, name in enumerate(names, 1):
            self._reached[tenant] = name
            if (entry := overlay.get(name)) is not None:  # else a bulk command has cancelled it in this cycle
                transaction.remove(name)
                transaction.history.record(EventType.CANCELLED, name, entry, TENANT_DELETED)
                size += len(entry.schedule.payload or b"")
            if size > max_bytes:
                return removed, size
        return len(names), size
