"""Pending schedules in due order: the table's, with the changes of a cycle applied."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from itertools import chain

from light_scheduler.model import NEVER
from light_scheduler.model.probe import PROBE_IDENTITY, PROBE_TENANT

from . import layout
from .due_scan import Candidates, TenantScan, Waits
from .layout import PRIMARY
from .rows import Rows
from .table import ScheduleTable


class DueOrder:
    """The due order of one cycle. `fresh` has the time-index keys it has put, by tenant; `rows` has their records."""

    def __init__(self, table: ScheduleTable, rows: Rows, fresh: Mapping[str, set[bytes]]) -> None:
        self._table = table
        self._rows = rows
        self._changes = rows.changes
        self._fresh = fresh

    def scans(
        self, until: int, unit: float, allowed: Callable[[str], int | None], waits: Waits | None
    ) -> tuple[dict[str, TenantScan], int]:
        """Return a scan for each tenant with due schedules, and the due time (ms) of the first other fresh schedule."""
        fresh_due: dict[str, list[bytes]] = {}
        next_fresh = NEVER
        for tenant, keys in self._fresh.items():
            bound = layout.index_from(tenant, until + 1)
            if due := sorted(key for key in keys if key < bound):
                fresh_due[tenant] = due
            if tenant != PROBE_TENANT and (later := keys.difference(due) if due else keys):
                next_fresh = min(next_fresh, layout.due_of(min(later)))
        scans = {}
        for tenant in dict.fromkeys((*self._table.floors.due(until), *fresh_due)):
            items = self._ordered(tenant, fresh_due.get(tenant, []))
            candidates = Candidates(items, layout.index_from(tenant, until + 1))
            scans[tenant] = TenantScan(
                tenant, candidates, most=allowed(tenant), unit=unit, rows=self._rows, waits=waits
            )
        return scans, next_fresh

    def first_put_here(self, tenants: Collection[str]) -> int:
        """Return the due time (ms) of the first fresh schedule of these tenants, or NEVER."""
        keys = (min(fresh) for tenant in tenants if tenant != PROBE_TENANT and (fresh := self._fresh.get(tenant)))
        return min(map(layout.due_of, keys), default=NEVER)

    def first_stored(self, scanned: Container[str], next_due: int) -> int:
        """Return the due time (ms) of the first stored schedule of tenants not `scanned`, or `next_due` if earlier.

        Moves floors up to their first schedule if they are below it.
        """
        floors = self._table.floors
        place = None
        while (place := floors.after(place)) is not None and place[0] < next_due:
            tenant = place[1]
            if tenant != PROBE_TENANT and tenant not in scanned:
                stored = self._stored_of(tenant)
                first = next(stored, None)
                floors.move(tenant, None if first is None else first[0])
                items = stored if first is None else chain([first], stored)
                left = next((key for key, _ in items if key not in self._changes), None)
                if left is not None:
                    next_due = min(next_due, layout.due_of(left))
        return next_due

    def probe_due(self) -> int | None:
        """Return the due time (ms) of the partition's probe; None if there is no probe."""
        if PROBE_TENANT not in self._fresh and self._table.floors.get(PROBE_TENANT) is None:
            return None
        primary = self._rows.primary_of(PRIMARY + PROBE_IDENTITY)
        return None if primary is None else layout.due_of(layout.indexed_at(primary))

    def _ordered(self, tenant: str, fresh: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Return a tenant's (time-index key, value) in order: unchanged stored schedules, and these fresh keys."""
        changes = self._changes
        stored = self._stored_of(tenant)
        if changes:  # changed schedules were replaced or cancelled in this cycle, or are fresh
            stored = (item for item in stored if item[0] not in changes)
        if fresh:
            stored = heapq.merge(stored, ((key, changes[key] or b"") for key in fresh))
        return stored

    def _stored_of(self, tenant: str) -> Iterator[tuple[bytes, bytes]]:
        floor = self._table.floors.get(tenant)
        return iter(()) if floor is None else self._table.store.scan(floor, layout.tenant_end(tenant))
