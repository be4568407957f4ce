"""The size of a lane's cycle and its due schedules, by pace, tenants' shares and rate caps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from light_scheduler.engine import FairQueue, shares_under
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.failures.refused_record_search import RefusedRecordSearch
from light_scheduler.model import Entry
from light_scheduler.model.rate_lending import ALL
from light_scheduler.model.tenant_rules import NO_TENANTS
from light_scheduler.tables import DueScan, Overlay, ScheduleTable
from light_scheduler.tables.due_scan import Waits

from .pace import MOST, Pace

MAX_ISOLATED = 200
"""Maximum number of commands, or firings, in a cycle while the lane searches for a refused record."""

NOTHING_DUE = DueScan([], None)


class TurnBudget(NamedTuple):
    """The maximum number of turns of schedules in a cycle, and of payload bytes.

    With `is_capped`, the cap on all firings together sets the number of turns. The due scan has the turns per tenant
    (`DueScan.allowed`).
    """

    most: int
    max_bytes: int
    is_capped: bool = False


class Budget:
    """The budget of one lane. `waits` returns the unavailable targets. `next_due` is the next pending due time."""

    def __init__(
        self,
        context: CycleContext,
        record_search: RefusedRecordSearch,
        waits: Callable[[], Waits | None],
    ) -> None:
        self.next_due: int | None = None
        self._context = context
        self._record_search = record_search
        self._waits = waits
        self._fair = FairQueue(context.shares.weights)
        self._firing_rates = context.firing_rates
        self._pace = Pace()
        self._tenants = NO_TENANTS

    def begin(self) -> None:
        """Begin a cycle. Shares in an uncommitted cycle do not count."""
        self._fair.begin()

    def commit(self) -> None:
        """Charge tenants for their shares in the committed cycle."""
        self._fair.commit()

    def follow_tenants(self, now: int) -> None:
        """Apply the current rules of tenants (weights, caps, pauses) and the current number of partitions."""
        self._firing_rates.earn(self._context.rate_part, now)
        book = self._context.tenants.book
        if book is not self._tenants:
            self._tenants = book
            shares = shares_under(self._context.shares, book)
            self._fair.weights = shares.weights
            self._firing_rates.change(shares)

    @property
    def has_caps(self) -> bool:
        """Whether any firings are capped."""
        return self._firing_rates.has_caps

    def most(self, table: ScheduleTable) -> int:
        """Return how many commands, and how many firings, a cycle may hold.

        With several tenants, cycles are short, so that no tenant waits long for another.
        """
        if self._record_search.is_seeking:
            return MAX_ISOLATED
        return self._pace.limit if len(table.floors) > 1 else MOST

    def turns(self, now: int, most: int, max_bytes: int) -> TurnBudget:
        """Return how much of a cycle the cap on all firings together allows."""
        total = self._firing_rates.total(now)
        if total is None or total > most:
            return TurnBudget(most, max_bytes)
        return TurnBudget(total, max_bytes, is_capped=True)

    def take_due(self, overlay: Overlay, now: int, turns: TurnBudget) -> DueScan:
        """Return the schedules that are due now, as many as a cycle may hold."""
        firing_rates, stopped = self._firing_rates, self._tenants.stopped
        due = overlay.due(
            now,
            turns.most,
            turns.max_bytes,
            self._fair,
            lambda tenant: 0 if tenant in stopped else firing_rates.allowed(tenant, now),
            self._waits(),
        )
        waiting = (at for tenant, at in due.held.items() if tenant not in stopped)  # paused firings are not late
        self.next_due = min(filter(None, (due.next_due, *waiting)), default=None)
        ready = [at for at in (due.next_due, due.probe_due) if at is not None and at <= now]
        if ready and turns.is_capped:
            next_due = None if due.next_due in ready else due.next_due
            due = due._replace(next_due=next_due, probe_due=None, held={**due.held, ALL: min(ready)})
        return due

    def take_staged(self, overlay: Overlay, instant: int, turns: TurnBudget) -> DueScan:
        """Return the schedules that will be due at an instant ahead. Caps do not apply."""
        stopped = self._tenants.stopped
        return overlay.due(
            instant,
            turns.most,
            turns.max_bytes,
            self._fair,
            lambda tenant: 0 if tenant in stopped else None,
            self._waits(),
        )

    def held(self, due: DueScan) -> dict[str, float]:
        """Return the tenants that have to wait for a cap, with the cap."""
        caps = {tenant: self._firing_rates.cap_of(tenant) for tenant in due.held.keys() - self._tenants.stopped}
        return {tenant: cap for tenant, cap in caps.items() if cap is not None}

    def next_turn(self, due: DueScan, now: int) -> int | None:
        """Note who waits for a cap. Return when (ms) the next firing is possible, or None if not before a command."""
        resumes = self._firing_rates.hold(due.held.keys() - self._tenants.stopped, now)
        return min(filter(None, (due.next_due, due.probe_due, resumes)), default=None)

    def charge(self, delivered: list[Entry], now: int) -> int:
        """Charge delivered firings to the caps. Return how many had waited for a cap."""
        return self._firing_rates.charge(delivered, now)

    def observe(self, size: int, took_ms: int) -> None:
        """Adapt the pace to a cycle of `size` that took `took_ms`."""
        self._pace.observe(size, took_ms)
