"""Fair sharing: which tenant is served next when several have more work than can be done at once.

Start-time fair queuing (Goyal, Vin, Cheng: SIGCOMM 1996). A tenant's virtual time is what has been done for it, divided
by its weight; the tenant with the least is served next. One that comes back after a pause starts at the virtual time of
the one that is being served: it has its share from then on, and none for the time in which it asked for nothing. Unlike
in deficit round robin, nobody waits for a round of all others, and one large piece of work needs no rounds of saving.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

Serve = Callable[[float], float]
"""Do a tenant's next work until it costs an allowance; return what it cost: less only if there is no more."""

QUANTUM = 32.0
"""Allowance of a tenant's turn. A larger one switches tenants less often, a smaller one shares more evenly."""

NO_WEIGHTS: Mapping[str, int] = {}


class FairQueue:
    """Shares between tenants by weight (1 if not given), over any number of calls."""

    def __init__(self, weights: Mapping[str, int] = NO_WEIGHTS) -> None:
        self.weights = weights
        self._served: dict[str, float] = {}  # tenant -> its virtual time, if that is not behind the virtual time
        self._virtual_time = 0.0
        self._committed = self._served, self._virtual_time

    def begin(self) -> None:
        """Begin a transaction: what was done since the last `commit` has come to nothing, and is charged to nobody."""
        self._served, self._virtual_time = self._committed

    def commit(self) -> None:
        """Charge what was done."""
        self._committed = self._served, self._virtual_time

    def share(self, waiting: Mapping[str, Serve], budget: float) -> None:
        """Serve those who wait until a budget is spent or nobody waits; the last piece of work may pass the budget.

        Among equals, who waits since a call before comes first, then the order of `waiting`.
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
