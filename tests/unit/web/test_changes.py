"""What was changed of tenants, tokens and delay rules: told in the history, and listed over HTTP."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from light_scheduler.access import Identity, Role
from light_scheduler.errors import BrokerError
from light_scheduler.model import Requester
from light_scheduler.web.records.changes import changes_of
from light_scheduler.wire import UnsentRecord, change_record, decode_history, history_key

NOW = 1_800_000_000_000
HOUR = 3_600_000
TOPIC = "light-scheduler-history"
CHANGES = "/api/v1/changes"
OPS = Requester("ops", "192.0.2.7")


def changed(cluster: Any, tenant: str, reason: str, at: int = NOW) -> None:
    cluster.topics.add(TOPIC, *change_record(tenant, reason, OPS, at), at=at)


async def bearer(cluster: Any, role: str, *tenants: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {await cluster.token(role, *tenants)}"}


async def reasons(worker: Any, query: str = "", **options: Any) -> list[str]:
    page = await worker.ask("GET", CHANGES + query, 200, **options)
    return [change["reason"] for change in page["changes"]]


async def test_each_change_is_listed_the_newest_first_with_who_and_from_where(cluster: Any, workers: Any) -> None:
    headers = await bearer(cluster, "admin")
    await workers[0].ask("PUT", "/api/v1/tenants/shop", 201, {"max_pending": 100}, headers=headers)
    cluster.clock.advance(1)
    await workers[1].ask("PUT", "/api/v1/tenants/shop", 200, {"max_pending": 200, "weight": 3}, headers=headers)
    for verb in ("pause", "resume"):
        await workers[0].ask("POST", f"/api/v1/tenants/shop/{verb}", 200, headers=headers)
    await workers[0].ask("DELETE", "/api/v1/tenants/shop", 200, headers=headers)
    made = await workers[0].ask("POST", "/api/v1/tokens", 201, {"name": "ci", "role": "read", "tenants": ["shop"]},
                                headers=headers)  # fmt: skip
    id = made["about"]["id"]
    await workers[0].ask("POST", f"/api/v1/tokens/{id}/rotate?keep=0", 200, headers=headers)
    await workers[1].ask("DELETE", f"/api/v1/tokens/{id}", 200, headers=headers)

    page = await workers[1].ask("GET", CHANGES, 200, headers=headers)
    *made_by_hand, first = page["changes"]  # the fixture made the token of this test
    assert first["by"] == "test"
    assert [each["reason"] for each in made_by_hand] == [
        f"token {id} (ci) revoked: it was read for shop",
        f"token {id} (ci) rotated: the secret before is not valid any more",
        f"token {id} (ci) created: read for shop, does not expire",
        "tenant shop: active -> deleted",
        "tenant shop: paused -> active",
        "tenant shop: active -> paused",
        "rules of tenant shop: max_pending 100 -> 200, weight none -> 3",
        "rules of tenant shop: max_pending none -> 100",
    ]
    assert {(each["event"], each["tenant"], each["by"], each["address"]) for each in made_by_hand} == {
        ("changed", "shop", "admin", "127.0.0.1")
    }
    assert made_by_hand[0] == {
        "event": "changed", "tenant": "shop", "id": None, "version": None, "due": None, "at": NOW + 1, "sequence": None,
        "attempt": None, "target_topic": None, "reason": made_by_hand[0]["reason"], "partition": 0, "by": "admin",
        "address": "127.0.0.1",
    }  # fmt: skip
    assert (page["searched_from"], page["next_cursor"]) == (NOW + 1 - 24 * HOUR, None)


async def test_what_is_not_changed_is_not_told(cluster: Any, workers: Any) -> None:
    await workers[0].ask("PUT", "/api/v1/tenants/shop", 400, {"weight": 0})
    cluster.tenants.failure = BrokerError("the broker did not answer in time")
    await workers[0].ask("PUT", "/api/v1/tenants/shop", 503, {"weight": 2})
    assert await reasons(workers[0]) == []


async def test_a_delay_rule_is_changed_in_the_name_of_who_asks(workers: Any) -> None:
    worker = workers[0]
    async with worker.client.put("/api/v1/delays/later", json={"source": "b", "delay": "1m", "target": "c"}) as answer:
        assert answer.status == 201
    async with worker.client.delete("/api/v1/delays/later") as answer:
        assert answer.status == 204
    assert worker.delays.changers == [Requester("anonymous", "127.0.0.1")] * 2


async def test_who_administers_some_tenants_sees_the_changes_of_those_alone(cluster: Any, workers: Any) -> None:
    everything, some = await bearer(cluster, "admin"), await bearer(cluster, "admin", "a", "b")
    for tenant in ("a", "b", "c", ""):
        changed(cluster, tenant, f"of {tenant or 'several'}")
    assert set(await reasons(workers[0], headers=everything)) >= {"of a", "of b", "of c", "of several"}
    assert await reasons(workers[0], headers=some) == ["of b", "of a"]
    assert await reasons(workers[0], "?tenant=a", headers=some) == ["of a"]
    assert await reasons(workers[0], "?tenant=c", headers=everything) == ["of c"]
    await workers[0].ask("GET", f"{CHANGES}?tenant=c", 404, headers=some)
    for role in ("write", "read"):
        await workers[0].ask("GET", CHANGES, 403, headers=await bearer(cluster, role))


def test_a_tenant_without_a_name_stands_for_all_and_is_seen_by_who_sees_all() -> None:
    key, value = change_record("", "token x revoked", OPS, NOW)
    record = UnsentRecord(key, value, [], NOW)
    some = Identity("oidc:x", Role.ADMIN, frozenset({"", "a"}))
    assert changes_of(None, some)(record) is None
    found = changes_of(None, Identity("ops", Role.ADMIN))(record)
    assert found is not None
    assert found.reason == "token x revoked"


async def test_changes_come_page_by_page_of_a_day_or_since_the_instant_that_is_named(
    cluster: Any, workers: Any
) -> None:
    changed(cluster, "shop", "long ago", NOW - 30 * HOUR)
    for number in range(5):
        changed(cluster, "shop", str(number), NOW - HOUR + number)
    assert await reasons(workers[0]) == ["4", "3", "2", "1", "0"]
    page = await workers[0].json(CHANGES, limit="3")
    assert [each["reason"] for each in page["changes"]] == ["4", "3", "2"]
    page = await workers[0].json(CHANGES, limit="3", cursor=page["next_cursor"])
    assert [each["reason"] for each in page["changes"]] == ["1", "0"]
    assert "long ago" in await reasons(workers[0], f"?since={NOW - 31 * HOUR}")


@pytest.mark.parametrize(
    "parameters", [{"since": "soon"}, {"limit": "0"}, {"cursor": "x"}, {"tenant": "a b"}, {"id": "a"}]
)
async def test_a_wrong_parameter_is_named(workers: Any, parameters: dict[str, str]) -> None:
    problem = await workers[0].json(CHANGES, 400, **parameters)
    assert problem["parameter"] in parameters


async def test_readers_pass_over_what_is_no_change_and_events_that_only_newer_versions_know(
    cluster: Any, workers: Any
) -> None:
    changed(cluster, "shop", "seen")
    key, value = change_record("shop", "x", OPS, NOW)
    newer = msgspec.json.encode({**msgspec.json.decode(value), "event": "teleported"})
    for record_key in (key, history_key("default", "a"), history_key("default", "a/")):
        cluster.topics.add(TOPIC, record_key, newer)
    told = msgspec.structs.replace(decode_history(value), id="a", tenant="default")
    cluster.topics.add(TOPIC, history_key("default", "a"), msgspec.json.encode(told))
    cluster.topics.add(TOPIC, key, b"of somebody else")
    cluster.topics.add(TOPIC, None, value)
    assert await reasons(workers[0]) == ["seen"]
    path = "/api/v1/tenants/default/schedules/a"
    assert (await workers[0].json(f"{path}/history"))["events"] == []
    assert (await workers[0].json(f"{path}/why"))["state"] == "unknown"
    problem = await workers[0].json(f"{path}/history", 400, event="changed")
    assert problem["parameter"] == "event"


async def test_the_command_line_lists_changes(cluster: Any, workers: Any, run: Any) -> None:
    changed(cluster, "shop", "rules of tenant shop: max_pending 100 -> 200", NOW - HOUR)
    changed(cluster, "", "delay rule later removed\x1b[2J", NOW - 1)
    url = ("--url", workers[0].url)
    code, out, err = await run("history", "--changes", *url)
    assert code == 0, err
    assert out.splitlines() == [
        "2027-01-15T07:59:59.999Z changed       delay rule later removed\\x1b[2J by ops from 192.0.2.7",
        "2027-01-15T07:00:00.000Z changed       rules of tenant shop: max_pending 100 -> 200 by ops from 192.0.2.7",
    ]
    assert err == "2 changes since 2027-01-14T08:00:00.000Z\n"
    code, out, _ = await run("history", "--changes", "--tenant", "shop", "--json", *url)
    assert [json.loads(line)["tenant"] for line in out.splitlines()] == ["shop"]
    code, out, _ = await run("history", "--changes", "--limit", "1", "--json", *url)
    assert len(out.splitlines()) == 1
    code, out, err = await run("history", "--changes", "--since", str(NOW - 2), *url)
    assert (len(out.splitlines()), err) == (1, "1 change since 2027-01-15T07:59:59.998Z\n")
    for words in (["a", "--changes"], ["--changes", "--event", "fired"], []):
        code, _, err = await run("history", *words, *url)
        assert (code, "--changes" in err) == (2, True)
