"""What rules of tenants mean for commands and shares."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.engine import distributed, share_of, shares_under
from light_scheduler.model import Once, ScheduleCommand, Shares, Target
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.wire import partition_for

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


def test_parts_of_a_quota_are_the_quota() -> None:
    assert [share_of(10, number, 4) for number in range(4)] == [3, 3, 2, 2]
    assert [share_of(2, number, 3) for number in range(3)] == [1, 1, 0]


def test_a_quota_is_used_up_to_a_twentieth_when_the_first_key_is_refused() -> None:
    partitions, quota = 12, 24_000
    left = [share_of(quota, number, partitions) for number in range(partitions)]
    accepted = 0
    while left[home := partition_for(b"order-%d" % accepted, partitions)]:
        left[home] -= 1
        accepted += 1
    assert 0.95 * quota <= accepted <= quota


@pytest.mark.parametrize(
    ("rule", "target", "chosen"),
    [
        (None, {}, (None, None)),
        ("key", {}, (None, None)),
        ("partition:3", {}, (3, None)),
        ("header:region", {}, (None, b"eu")),
        ("header:absent", {}, (None, None)),
        ("round-robin", {}, (None, b"a to out")),
        ("partition:3", {"partition": 1}, (1, None)),
        ("round-robin", {"partition_key": b"k"}, (None, b"k")),
    ],
)
def test_a_distribution_chooses_where_a_command_does_not(
    rule: str | None, target: dict[str, Any], chosen: tuple[int | None, bytes | None]
) -> None:
    tenant = Tenant(name="a", rules=TenantRules(distribution=rule))
    aim, headers = Target("out", b"key", **target), [("region", b"eu"), ("null", None)]
    command = ScheduleCommand("a", "id", b"key", Once(AT), aim, b"", headers, 2, 7, AT)
    found = distributed(command, tenant, lambda each: f"{each.tenant} to {each.target.topic}".encode())
    assert isinstance(found, ScheduleCommand)
    assert (found.target.partition, found.target.partition_key) == chosen
    assert found.target.key == b"key"
