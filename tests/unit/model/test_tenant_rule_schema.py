"""The JSON Schema of a tenant's rules allows what the rules may be, and nothing else."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
import pytest

from light_scheduler.model.tenant_rules import TenantRules, TenantRulesError, check_tenant_rules

IS_VALID = jsonschema_rs.validator_for(msgspec.json.schema(TenantRules)).is_valid


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"targets": ["orders-*"], "default_target": "orders-1"},
        {"targets": ["a"] * 100},
        {"distribution": "key"},
        {"distribution": "partition:999999"},
        {"distribution": "header:" + "h" * 249},
        {"max_payload_bytes": 0, "max_pending": 10_000_000_000, "commands_per_second": 0.001, "weight": 1},
        {"firings_per_second": 10_000_000, "over_rate": "delay"},
    ],
)
def test_what_the_rules_may_be_is_valid(rules: dict[str, Any]) -> None:
    check_tenant_rules(msgspec.convert(rules, TenantRules))
    assert IS_VALID(rules)


@pytest.mark.parametrize(
    "rules",
    [
        {"targets": []},
        {"targets": ["a"] * 101},
        {"targets": ["not a topic"]},
        {"default_target": ".."},
        {"default_target": ""},
        {"distribution": "partition:"},
        {"distribution": "header:" + "h" * 250},
        {"max_payload_bytes": -1},
        {"max_pending": 10_000_000_001},
        {"commands_per_second": 0},
        {"firings_per_second": 10_000_001},
        {"weight": 0},
    ],
)
def test_what_the_rules_may_not_be_is_not_valid(rules: dict[str, Any]) -> None:
    with pytest.raises(TenantRulesError):
        check_tenant_rules(msgspec.convert(rules, TenantRules))
    assert not IS_VALID(rules)
