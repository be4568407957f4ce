"""Rules of tenants: what they may be, and what patterns mean."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.model.tenant_rules import (
    Tenant,
    TenantBook,
    TenantRules,
    TenantRulesError,
    TenantState,
    check_tenant_name,
    check_tenant_rules,
)


@pytest.mark.parametrize(
    ("patterns", "topic", "is_allowed"),
    [
        (None, "anything", True),
        (("orders",), "orders", True),
        (("orders",), "orders-eu", False),
        (("orders",), "my.orders", False),
        (("orders-*",), "orders-eu", True),
        (("orders-*",), "orders", False),
        (("a.c",), "abc", False),
        (("x", "*-eu"), "orders-eu", True),
        (("*",), "anything", True),
        (("a*b*c",), "a-b-b-c", True),
        (("*a" * 40,), "a" * 200 + "b", False),
    ],
)
def test_a_pattern_stands_for_the_whole_name_of_a_topic(
    patterns: tuple[str, ...] | None, topic: str, is_allowed: bool
) -> None:
    assert Tenant(name="shop", rules=TenantRules(targets=patterns)).may_aim_at(topic) is is_allowed


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"targets": ()}, "targets"),
        ({"targets": ("a b",)}, "targets"),
        ({"targets": ("[a]",)}, "targets"),
        ({"targets": tuple(map(str, range(101)))}, "targets"),
        ({"default_target": ".."}, "default_target"),
        ({"default_target": "a*"}, "default_target"),
        ({"default_target": "b", "targets": ("a*",)}, "default_target"),
        ({"max_payload_bytes": -1}, "max_payload_bytes"),
        ({"firings_per_second": 0.0}, "firings_per_second"),
        ({"firings_per_second": float("nan")}, "firings_per_second"),
        ({"distribution": "partition:"}, "distribution"),
        ({"distribution": "partition:-1"}, "distribution"),
        ({"distribution": "header:"}, "distribution"),
        ({"distribution": "random"}, "distribution"),
        ({"max_pending": -1}, "max_pending"),
        ({"commands_per_second": 0.0}, "commands_per_second"),
        ({"weight": 0}, "weight"),
        ({"weight": 1_001}, "weight"),
    ],
)
def test_rules_that_mean_nothing_are_refused_by_name(rules: dict[str, Any], field: str) -> None:
    with pytest.raises(TenantRulesError) as refused:
        check_tenant_rules(TenantRules(**rules))
    assert refused.value.field == field


def test_rules_and_names_within_their_bounds_are_fine() -> None:
    check_tenant_rules(TenantRules())
    check_tenant_rules(TenantRules(targets=("a*",), default_target="ab", max_payload_bytes=0, weight=1_000))
    check_tenant_name("shop.eu-1")
    with pytest.raises(TenantRulesError, match="tenant: '\\*' is not a tenant name"):
        check_tenant_name("*")


def test_a_book_knows_of_whom_nothing_fires() -> None:
    book = TenantBook(
        [
            Tenant(name="a"),
            Tenant(name="p", state=TenantState.PAUSED),
            Tenant(name="d", state=TenantState.DELETED),
            Tenant(name="u", is_readable=False),
        ]
    )
    assert book.stopped == {"p", "d", "u"}
    assert book.deleted == {"d"}
    assert book
    assert not TenantBook()
