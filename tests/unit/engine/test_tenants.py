"""What rules of tenants mean for commands and shares."""

from __future__ import annotations

from light_scheduler.engine import shares_under
from light_scheduler.engine.throttle import Throttle
from light_scheduler.model import Shares
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules

AT = 1_767_225_600_000


def test_weights_and_rates_of_rules_come_before_those_of_the_settings() -> None:
    shares = Shares({"a": 2, "b": 3}, rate=100, rates={"a": 5, "*": 7})
    book = TenantBook(
        [
            Tenant(name="a", rules=TenantRules(weight=9)),
            Tenant(name="c", rules=TenantRules(firings_per_second=1.5)),
            Tenant(name="d", rules=TenantRules(max_payload_bytes=1)),
        ]
    )
    assert shares_under(shares, book) == Shares({"a": 9, "b": 3}, 100, {"a": 5, "*": 7, "c": 1.5})


def test_new_caps_hold_at_once_and_buckets_whose_rate_stays_are_not_filled_up_again() -> None:
    throttle = Throttle(Shares(rates={"a": 8, "b": 8}))
    assert throttle.allowed("a", AT) == throttle.allowed("b", AT) == 2
    for tenant in "ab":
        bucket = throttle._bucket(tenant, AT)
        assert bucket is not None
        bucket.spend(2)
    throttle.change(Shares(rates={"a": 8, "b": 80, "c": 4}))
    assert [throttle.allowed(tenant, AT) for tenant in "abc"] == [0, 20, 1]
    throttle.change(Shares())
    assert throttle.allowed("a", AT) is None
    assert not throttle.has_caps
