"""The floors of tenants: where each tenant's pending schedules begin in the time index."""

from __future__ import annotations

from sortedcontainers import SortedSet

from light_scheduler.model.probe import PROBE_TENANT

from . import layout


class Floors:
    """A time-index key for each tenant, before which the tenant has no pending schedules.

    Scans from a floor skip rows that the store has deleted but not yet compacted. A floor is never above a pending
    schedule, but can be below the first one after a cancellation. Tenants without pending schedules can remain here.
    """

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._by_due: SortedSet[tuple[int, str]] = SortedSet()

    def __len__(self) -> int:
        """Return the number of tenants that may have pending schedules, without the probe."""
        return len(self._keys) - (PROBE_TENANT in self._keys)

    def get(self, tenant: str) -> bytes | None:
        """Return a tenant's floor; None if the tenant has no pending schedule."""
        return self._keys.get(tenant)

    def after(self, place: tuple[int, str] | None) -> tuple[int, str] | None:
        """Return the (due, tenant) after `place`, or the first one. They are ordered by the due time (ms) of floors."""
        index = 0 if place is None else self._by_due.bisect_right(place)
        following: tuple[int, str] | None = self._by_due[index] if index < len(self._by_due) else None
        return following

    def due(self, until: int) -> list[str]:
        """Return the tenants whose floor is due at or before an instant (ms), in order."""
        return [tenant for _, tenant in self._by_due.irange(maximum=(until + 1, ""), inclusive=(True, False))]

    def move(self, tenant: str, key: bytes | None) -> None:
        """Set a tenant's floor; None if the tenant has no pending schedule."""
        old = self._keys.get(tenant)
        if key == old:
            return
        if old is not None:
            del self._keys[tenant]
            self._by_due.remove((layout.due_of(old), tenant))
        if key is not None:
            self._keys[tenant] = key
            self._by_due.add((layout.due_of(key), tenant))

    def lower(self, tenant: str, key: bytes) -> None:
        """Lower a tenant's floor to a key, unless it is lower already."""
        floor = self._keys.get(tenant)
        if floor is None or key < floor:
            self.move(tenant, key)
