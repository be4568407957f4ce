"""The firings that a worker has delivered of each tenant, for a limited number of tenants: each is a time series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_TENANTS = 100
"""Number of tenants with a count of their own: the first ones that this worker delivers firings of."""


@dataclass
class TenantFirings:
    """Firings since the worker began, of all lanes that it has or had.

    A tenant that is named stays named, and one that is not stays among the others, so no count ever goes down.
    """

    named: Counter[str] = field(default_factory=Counter)
    others: int = 0

    def add(self, delivered: Mapping[str, Counter[int]]) -> None:
        """Count what a transaction delivered of each tenant, by when that was due."""
        for tenant, dues in delivered.items():
            if not (firings := dues.total()):
                continue
            if tenant in self.named or len(self.named) < MOST_TENANTS:
                self.named[tenant] += firings
            else:
                self.others += firings
