"""How many firings each tenant had: of as many tenants as are named, and never fewer than before."""

from __future__ import annotations

from collections import Counter

import pytest
from support.tables import entry

from light_scheduler.lanes import tenant_firings
from light_scheduler.lanes.tenant_firings import TenantFirings
from light_scheduler.model import Entry


def of(*tenants: str) -> list[Entry]:
    """Return firings of these tenants."""
    return [entry("id", tenant=tenant) for tenant in tenants]


def test_firings_are_counted_by_tenant() -> None:
    firings = TenantFirings()
    firings.add(of("a", "b", "a"))
    firings.add(of("b"))
    firings.add([])
    assert firings == TenantFirings(Counter(a=2, b=2))


def test_tenants_beyond_the_most_are_counted_together_and_no_count_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_firings, "MOST_TENANTS", 2)
    firings = TenantFirings()
    firings.add(of("a", "b"))
    firings.add(of(*("c" * 9), "a"))
    assert firings == TenantFirings(Counter(a=2, b=1), others=9)
