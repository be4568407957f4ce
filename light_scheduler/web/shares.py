"""What a worker has a limited amount of, shared among those who ask for it: nobody may hold more than is left.

One holder alone gets half of it, each of two gets a third, and whoever has nothing finds something. That is how
switches share their memory among ports: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
switches" (1998).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from light_scheduler.access import Identity

Holder = frozenset[str] | str
"""For whom a request is: the tenant in its path; otherwise all tenants of its token, or the name of one for all."""

HOLDER: ContextVar[Holder] = ContextVar("holder", default="")
"""For whom the request is that this task works on; empty: it needs no token."""


def holder_for(identity: Identity, tenant: str | None) -> Holder:
    """Return for whom a request is that names a tenant in its path, or none."""
    if tenant is not None:
        return frozenset((tenant,))
    return identity.name if identity.tenants is None else identity.tenants


class Shares:
    """`total` of something. What is taken is given back."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._held: Counter[Holder] = Counter()
        self._used = 0

    def has_room(self, holder: Holder, amount: int = 1) -> bool:
        """Tell whether a holder may take so much: with that it holds no more than is left before."""
        return self._held[holder] + amount <= self._total - self._used

    def take(self, holder: Holder, amount: int = 1) -> None:
        """Take so much, whether there is room or not."""
        self._held[holder] += amount
        self._used += amount

    def give_back(self, holder: Holder, amount: int = 1) -> None:
        """Give back what was taken."""
        self._used -= amount
        self._held[holder] -= amount
        if not self._held[holder]:
            del self._held[holder]

    @contextmanager
    def holding(self, holder: Holder, amount: int = 1) -> Iterator[None]:
        """Take so much, and give it back in the end."""
        self.take(holder, amount)
        try:
            yield
        finally:
            self.give_back(holder, amount)
