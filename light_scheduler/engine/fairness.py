"""Fair sharing: decides which tenant is served next when several have more work than can be done at once.

Start-time fair queuing (Goyal, Vin, Cheng: SIGCOMM 1996). A tenant's virtual time is the work done for it, divided by
its weight. The tenant with the smallest virtual time is served next. A tenant that returns after a pause starts at the
virtual time of the tenant being served: it gets its share from then on, but none for the pause. Unlike in deficit round
robin, no tenant waits for a round of all others, and a large piece of work needs no rounds of saving.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

Serve = Callable[[float], float]
"""Does a tenant's next work up to an allowance. Returns the cost, which is less only if there is no more work."""

QUANTUM = 32.0
"""Allowance of a tenant's turn. A larger value switches tenants less often, a smaller one shares more evenly."""

NO_WEIGHTS: Mapping[str, int] = {}


class FairQueue:
    """Shares work between tenants by weight (default 1), across calls."""

    def __init__(self, weights: Mapping[str, int] = NO_WEIGHTS) -> None:
        self.weights = weights
        self._served: dict[str, float] = {}  # tenant -> its virtual time, unless it is behind `_virtual_time`
        self._virtual_time = 0.0
        self._committed = self._served, self._virtual_time

    def begin(self) -> None:
        """Begin a transaction. Work since the last `commit` was lost, and is not charged."""
        self._served, self._virtual_time = self._committed

    def commit(self) -> None:
        """Charge the work done in the transaction."""
        self._committed = self._served, self._virtual_time

    def share(self, waiting: Mapping[str, Serve], budget: float) -> None:
        """Serve waiting tenants until the budget is spent or none waits. The last piece of work may exceed the budget.

        Among equals, tenants from earlier calls come first, then the order of `waiting` counts.
        """
        served = dict(self._served)
        for tenant in waiting:
            served.setdefault(tenant, self._virtual_time)
        queue = [(at, place, tenant) for place, (tenant, at) in enumerate(served.items()) if tenant in waiting]
        heapq.heapify(queue)
        while queue and budget > 0:
            self._virtual_time, place, tenant = queue[0]
            asked = min(QUANTUM, budget) if len(queue) > 1 else budget
            cost = waiting[tenant](asked)
            budget -= cost
            served[tenant] = self._virtual_time + cost / self.weights.get(tenant, 1)
            if cost < asked:
                heapq.heappop(queue)
            else:
                heapq.heapreplace(queue, (served[tenant], place, tenant))
        self._served = {tenant: at for tenant, at in served.items() if at >= self._virtual_time}
