"""The order of turns within a cycle: by (due, priority, arrival), including schedules that wake again at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Entry
from light_scheduler.tables import DueScan, layout
from light_scheduler.tables.due_scan import Waits
from light_scheduler.tables.layout import Order

from .budget import TurnBudget
from .firings import Firings


class Turns:
    """Fires schedules in order until the budget is used up. Its bytes only count schedules that wake again at once.

    The rest is left for another cycle. So are schedules of a tenant that has used all its turns, and those that `waits`
    holds back for their targets.
    """

    def __init__(
        self, transaction: Transaction, firings: Firings, due: DueScan, budget: TurnBudget, waits: Waits | None
    ) -> None:
        self._leave: Callable[[Entry], None] = transaction.overlay.leave
        self._firings = firings
        self._now = transaction.now
        self._due = due
        self._most, self._max_bytes = budget.most, budget.max_bytes
        self._waits = waits
        self._cut = {tenant: layout.order_of(last) for tenant, last in due.cut.items()}
        self._allowed = dict(due.allowed)
        self._again: list[tuple[Order, Entry]] = []
        self._taken = 0
        self._size = 0

    def take(self) -> None:
        """Execute the turns."""
        entries, waits, again, fire = self._due.entries, self._waits, self._again, self._fire
        is_allowed = self._may_fire if self._allowed else None
        firings, most, max_bytes = self._firings, self._most, self._max_bytes
        for at, entry in enumerate(entries):
            if again:
                self._take_again(layout.order_of(entry))
            if self._taken + firings.steps >= most or self._size > max_bytes:  # `_is_spent`, inlined
                for left in entries[at:]:
                    self._leave(left)
                return
            if (waits is not None and waits(entry) is not None) or not (is_allowed is None or is_allowed(entry)):
                self._leave(entry)
            else:
                fire(entry)
        self._take_again(None)

    def _take_again(self, until: Order | None) -> None:
        """Fire schedules that wake again at once, up to a place in the order."""
        while self._again and (until is None or self._again[0][0] < until) and not self._is_spent:
            following = heapq.heappop(self._again)[1]
            if self._may_fire(following):
                self._size += len(following.schedule.payload or b"")
                self._fire(following)

    @property
    def _is_spent(self) -> bool:
        return self._taken + self._firings.steps >= self._most or self._size > self._max_bytes

    def _may_fire(self, entry: Entry) -> bool:
        """Use one of a tenant's turns, if they are limited. Return whether one was left."""
        if not self._allowed:
            return True
        tenant = entry.schedule.tenant
        left = self._allowed.get(tenant)
        if left is None:
            return True
        self._allowed[tenant] = left - 1
        return left > 0

    def _fire(self, entry: Entry) -> None:
        self._taken += 1
        following = self._firings.fire(entry)
        if following is not None and following.progress.wakes_at <= self._now:
            order = layout.order_of(following)
            last = self._cut.get(following.schedule.tenant)
            if last is None or order < last:  # else schedules of its tenant that the scan left come first
                heapq.heappush(self._again, (order, following))
