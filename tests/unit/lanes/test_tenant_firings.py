"""How many firings each tenant had: of as many tenants as are named, and never fewer than before."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from light_scheduler.lanes.context import tenant_firings
from light_scheduler.lanes.context.tenant_firings import TenantFirings


def of(*tenants: str) -> dict[str, Counter[int]]:
    """Return firings of these tenants, as a transaction counts them."""
    dues: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for number, tenant in enumerate(tenants):
        dues[tenant][number] += 1
    return dues


def test_firings_are_counted_by_tenant() -> None:
    firings = TenantFirings()
    firings.add(of("a", "b", "a"))
    firings.add(of("b"))
    firings.add({"c": Counter()})
    assert firings == TenantFirings(Counter(a=2, b=2))


def test_tenants_beyond_the_most_are_counted_together_and_no_count_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_firings, "MOST_TENANTS", 2)
    firings = TenantFirings()
    firings.add(of("a", "b"))
    firings.add(of(*("c" * 9), "a"))
    assert firings == TenantFirings(Counter(a=2, b=1), others=9)
