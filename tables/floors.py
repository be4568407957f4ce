"""Where each tenant's part of the time index begins: the register of tenants that have anything pending."""

from __future__ import annotations

from sortedcontainers import SortedSet

from light_scheduler.model.probe import PROBE_TENANT

from . import layout


class Floors:
    """For each tenant a time-index key before which none of its schedules is pending.

    It skips what the store has deleted but not yet compacted. A floor is never above a pending schedule, and may be
    below the first one, when that was cancelled; a tenant may be here that has nothing pending any more.
    """

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._by_due: SortedSet[tuple[int, str]] = SortedSet()

    def __len__(self) -> int:
        """Return how many tenants may have something pending; the probe is nobody's."""
        return len(self._keys) - (PROBE_TENANT in self._keys)

    def get(self, tenant: str) -> bytes | None:
        """Return a tenant's floor; None: the tenant has no pending schedule."""
        return self._keys.get(tenant)

    def after(self, place: tuple[int, str] | None) -> tuple[int, str] | None:
        """Return the (due, tenant) that follows another one, or the first one, by the due time (ms) of its floor."""
        index = 0 if place is None else self._by_due.bisect_right(place)
        following: tuple[int, str] | None = self._by_due[index] if index < len(self._by_due) else None
        return following

    def due(self, until: int) -> list[str]:
        """Return the tenants whose floor is due at or before an instant (ms), in order."""
        return [tenant for _, tenant in self._by_due.irange(maximum=(until + 1, ""), inclusive=(True, False))]

    def move(self, tenant: str, key: bytes | None) -> None:
        """Set a tenant's floor; None: the tenant has no pending schedule."""
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
        """Have a tenant's floor be at a key or below it."""
        floor = self._keys.get(tenant)
        if floor is None or key < floor:
            self.move(tenant, key)
