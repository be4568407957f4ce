"""The firings that a worker has delivered per tenant. The number of tenants is limited, as each is a time series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_TENANTS = 100
"""Number of tenants with a count of their own: the first whose firings this worker delivers."""


@dataclass
class TenantFirings:
    """Firings since the worker started, of all lanes that it has or had.

    A named tenant stays named, and any other stays among the others, so no count ever goes down.
    """

    named: Counter[str] = field(default_factory=Counter)
    others: int = 0

    def add(self, delivered: Mapping[str, Counter[int]]) -> None:
        """Count the firings of a transaction: tenant -> due time -> number."""
        for tenant, dues in delivered.items():
            if not (firings := dues.total()):
                continue
            if tenant in self.named or len(self.named) < MOST_TENANTS:
                self.named[tenant] += firings
            else:
                self.others += firings
