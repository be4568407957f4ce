"""Rules of tenants over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from light_scheduler.errors import BrokerError
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import TenantState

NOW = 1_800_000_000_000
SHOP = "/api/v1/tenants/shop"


async def test_rules_are_set_shown_listed_and_replaced_and_the_state_is_apart(workers: Any) -> None:
    await workers[0].ask("GET", SHOP, 404)
    rules = {"targets": ["shop-*"], "default_target": "shop-events", "firings_per_second": 10}
    told = await workers[0].ask("PUT", SHOP, 201, rules)
    assert told == {
        "name": "shop",
        "state": "active",
        "rules": {**rules, "firings_per_second": 10.0},
        "changed_at": NOW,
        "changed_by": "anonymous",
        "is_readable": True,
    }
    for verb, state in (("pause", "paused"), ("resume", "active")):
        assert (await workers[1].ask("POST", f"{SHOP}/{verb}", 200))["state"] == state
    await workers[1].ask("POST", f"{SHOP}/pause", 200)
    told = await workers[1].ask("PUT", SHOP, 200, {"weight": 3})
    assert (told["rules"], told["state"]) == ({"weight": 3}, "paused")
    assert (await workers[0].ask("DELETE", SHOP, 200))["state"] == "deleted"
    (listed,) = (await workers[1].ask("GET", "/api/v1/tenants", 200))["tenants"]
    assert listed == await workers[0].ask("GET", SHOP, 200)
    assert workers[0].tenants.book.deleted == {"shop"}


async def test_only_a_tenant_that_was_not_there_is_created(workers: Any) -> None:
    for status in (201, 200):
        assert (await workers[0].ask("PUT", SHOP, status, {"weight": 3}))["rules"] == {"weight": 3}
    await workers[0].ask("DELETE", SHOP, 200)
    assert (await workers[1].ask("PUT", SHOP, 200, {"weight": 4}))["state"] == "deleted"
    await workers[0].ask("POST", "/api/v1/tenants/stopped/pause", 200)
    assert (await workers[1].ask("PUT", "/api/v1/tenants/stopped", 200, {"weight": 4}))["state"] == "paused"


async def test_a_pause_does_not_undo_a_deletion(workers: Any) -> None:
    await workers[0].ask("DELETE", SHOP, 200)
    problem = await workers[1].ask("POST", f"{SHOP}/pause", 409)
    assert problem["type"].endswith(":conflict")
    assert "shop was deleted" in problem["detail"]
    assert "resume it first" in problem["detail"]
    assert workers[1].tenants.book.deleted == {"shop"}
    for verb, state in (("resume", "active"), ("pause", "paused")):
        assert (await workers[1].ask("POST", f"{SHOP}/{verb}", 200))["state"] == state
    await workers[0].ask("DELETE", SHOP, 200)
    assert (await workers[0].ask("DELETE", SHOP, 200))["state"] == "deleted"


@pytest.mark.parametrize(
    ("path", "body", "parameter", "kind"),
    [
        (SHOP, {"weight": 0}, "weight", "invalid-tenant-rules"),
        (SHOP, {"weight": "heavy"}, "weight", "invalid-tenant-rules"),
        (SHOP, {"over_rate": "wait"}, "over_rate", "invalid-tenant-rules"),
        (SHOP, {"moon_phase": 1}, "moon_phase", "invalid-tenant-rules"),
        (SHOP, b"", "body", "invalid-tenant-rules"),
        ("/api/v1/tenants/a%20b", {}, "tenant", "invalid-request"),
    ],
)
async def test_rules_that_cannot_be_are_refused_by_name(
    workers: Any, path: str, body: Any, parameter: str, kind: str
) -> None:
    problem = await workers[0].ask("PUT", path, 400, body)
    assert problem["parameter"] == parameter
    assert problem["type"].endswith(kind)
    assert not workers[0].tenants.book


async def test_rules_that_a_newer_version_wrote_are_not_replaced(cluster: Any, workers: Any) -> None:
    newer = b'{"rules":{"moon_phase":"full"},"at":1,"by":"ops"}'
    await cluster.tenants.write_all([(b"tenant/shop", newer)])
    problem = await workers[0].ask("PUT", SHOP, 400, {"weight": 3})
    assert "a newer version wrote rules of shop" in problem["detail"]
    assert cluster.tenants.entries[b"tenant/shop"] == newer
    assert (await workers[0].ask("GET", SHOP, 200))["is_readable"] is False


async def test_what_cannot_be_written_is_to_be_tried_again(cluster: Any, workers: Any) -> None:
    cluster.tenants.failure = BrokerError("away")
    assert "away" in (await workers[0].ask("POST", f"{SHOP}/pause", 503))["detail"]


async def test_a_schedule_without_a_target_is_for_tenants_with_a_default_one(workers: Any) -> None:
    path, body = f"{SHOP}/schedules/a", {"trigger": {"after": "1h"}}
    problem = await workers[0].ask("PUT", path, 400, body)
    assert problem["parameter"] == "target.topic"
    await workers[0].tenants.set_rules("shop", lambda rules: rules, by=Requester("test", ""))
    await workers[0].ask("PUT", path, 400, body)
    await workers[0].ask("PUT", SHOP, 200, {"default_target": "shop-events"})
    await workers[1].ask("PUT", f"{path}?wait=false", 202, body)
    await workers[1].ask("POST", f"{SHOP}/schedules?wait=false", 202, body)


async def test_a_token_for_some_tenants_sees_its_own_rules_and_changes_none(cluster: Any, workers: Any) -> None:
    await workers[0].tenants.set_state("shop", TenantState.PAUSED, by=Requester("test", ""))
    headers = {"Authorization": f"Bearer {await cluster.token('admin', 'shop')}"}
    assert (await workers[0].ask("GET", SHOP, 200, headers=headers))["state"] == "paused"
    await workers[0].ask("POST", f"{SHOP}/resume", 403, headers=headers)
    await workers[0].ask("GET", "/api/v1/tenants", 403, headers=headers)
    await workers[0].ask("GET", "/api/v1/tenants/other", 404, headers=headers)


async def test_only_another_quota_of_pending_schedules_starts_what_was_lent_of_it_anew(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    since: list[int] = []
    changes: list[dict[str, int]] = [{"weight": 2}, {"max_pending": 5}, {"weight": 3}, {"max_pending": 6}]
    for change in (*changes, {"max_pending": 5}, {}):
        cluster.clock.advance(1_000 if "weight" in change else 0)
        await worker.tenants.set_rules(
            "shop", lambda rules, change=change: replace(rules, **change), by=Requester("test", "")
        )
        since.append(worker.tenants.book.pending_since["shop"] - NOW)
    assert since == [1_000, 1_001, 1_001, 2_000, 2_001, 2_001]


async def test_any_name_can_be_deleted_until_it_is_resumed(workers: Any) -> None:
    unused = "/api/v1/tenants/never-used"
    await workers[0].ask("GET", unused, 404)
    assert (await workers[0].ask("DELETE", unused, 200))["state"] == "deleted"
    assert [each["name"] for each in (await workers[1].ask("GET", "/api/v1/tenants", 200))["tenants"]] == ["never-used"]
    assert workers[1].tenants.book.deleted == {"never-used"}
    await workers[0].ask("POST", f"{unused}/resume", 200)
    assert workers[1].tenants.book.deleted == frozenset()
