"""Limited resources of a worker, shared dynamically among holders: none may hold more than is left.

A single holder gets at most half, two get a third each, and a holder that has nothing always finds some left. Network
switches share memory among ports in this way: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
packet switches" (1998).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from light_scheduler.access import Identity

Holder = frozenset[str] | str
"""The holder of a request: the tenant in its path. Otherwise the tenants of its token or, if the token is for all
tenants, its name."""

HOLDER: ContextVar[Holder] = ContextVar("holder", default="")
"""The holder of the request that the current task works on; empty: the request needs no token."""


def holder_for(identity: Identity, tenant: str | None) -> Holder:
    """Return the holder of a request; `tenant` is the one in its path, if any."""
    if tenant is not None:
        return frozenset((tenant,))
    return identity.name if identity.tenants is None else identity.tenants


class Shares:
    """`total` units of a resource. Taken units must be given back."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._held: Counter[Holder] = Counter()
        self._used = 0

    @property
    def used(self) -> int:
        """The number of units taken."""
        return self._used

    def has_room(self, holder: Holder, amount: int = 1, *, freed: Mapping[Holder, int] | None = None) -> bool:
        """Return whether a holder may take an amount: afterwards it may hold no more than was left before.

        `freed` are amounts that holders will have given back by then.
        """
        freed = freed or {}
        held, used = self._held[holder] - freed.get(holder, 0), self._used - sum(freed.values())
        return held + amount <= self._total - used

    def take(self, holder: Holder, amount: int = 1) -> None:
        """Take an amount, whether there is room or not."""
        self._held[holder] += amount
        self._used += amount

    def give_back(self, holder: Holder, amount: int = 1) -> None:
        """Give an amount back."""
        self._used -= amount
        self._held[holder] -= amount
        if not self._held[holder]:
            del self._held[holder]

    @contextmanager
    def holding(self, holder: Holder, amount: int = 1) -> Iterator[None]:
        """Take an amount, and give it back at the end."""
        self.take(holder, amount)
        try:
            yield
        finally:
            self.give_back(holder, amount)
