"""The overview of the cluster, asked of any worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from yarl import URL

from light_scheduler.access import Identity, Role
from light_scheduler.lanes.context.status import LaneStatus
from light_scheduler.tables import ScheduleTable
from light_scheduler.web import overview
from light_scheduler.web.cluster.tenants_asked import questions
from light_scheduler.web.last_hour import SLOT_MS, LastHour
from light_scheduler.web.limits import slices

OVERVIEW = "/api/v1/overview"
NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"


async def listed(worker: Any, tenant: str) -> Counter[str]:
    """Count a tenant's schedules one by one, by state."""
    document = await worker.json(f"/api/v1/tenants/{tenant}/schedules", limit="500")
    return Counter(row["state"] for row in document["schedules"])


async def test_the_counts_are_those_of_the_lists_whichever_worker_is_asked(cluster: Any, workers: Any) -> None:
    for number in range(20):
        cluster.put(f"a-{number}", partition=number % 4, tenant="acme", target="out" if number % 3 else "in")
    for number in range(3):
        cluster.put(f"b-{number}", partition=number, tenant="shop", progress={"paused": True})
    expected = await listed(workers[0], "acme") + await listed(workers[0], "shop")
    for worker in workers:
        document = await worker.json(OVERVIEW)
        assert (document["pending"], document["states"]) == (23, expected)
        assert document["tenants"] == [{"tenant": "acme", "pending": 20}, {"tenant": "shop", "pending": 3}]
        assert document["targets"] == [{"target_topic": "out", "pending": 16}, {"target_topic": "in", "pending": 7}]
        assert (document["complete"], document["missing"]) == (True, [])


async def test_no_schedule_is_read(cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put("a")
    for name in ("get", "positions_by_id", "rows_by_due", "value_at"):
        monkeypatch.delattr(ScheduleTable, name)
    assert (await workers[0].json(OVERVIEW))["pending"] == 1
    async with workers[0].client.get("/metrics") as response:
        assert response.status == 200


async def test_partitions_of_workers_that_do_not_answer_are_named(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=0)
    cluster.put("b", partition=1)
    workers[0].lanes.states[TOPIC, 2] = "restoring"
    gone = workers[1].url
    await workers[1].stop()
    document = await workers[0].json(OVERVIEW)
    assert document["pending"] == 1
    assert [(each["partition"], each["worker"]) for each in document["missing"]] == [
        (1, gone),
        (2, workers[0].url),
        (3, gone),
    ]


async def test_a_token_for_some_tenants_sees_their_counts_and_nothing_of_others(cluster: Any, workers: Any) -> None:
    for number in range(6):
        cluster.put(f"{number}", partition=number % 4, tenant=("acme", "shop", "b")[number % 3])
    headers = {"Authorization": f"Bearer {await cluster.token('read', 'acme', 'shop')}"}
    document = await workers[1].ask("GET", OVERVIEW, 200, headers=headers)
    assert (document["pending"], document["states"]) == (4, {"pending": 4})
    assert [each["tenant"] for each in document["tenants"]] == ["acme", "shop"]
    assert [document[name] for name in ("backlog", "dead_letters", "next_due", "hour")] == [None] * 4
    everything = {"Authorization": f"Bearer {await cluster.token('read')}"}
    assert (await workers[1].ask("GET", OVERVIEW, 200, headers=everything))["pending"] == 6
    assert (await workers[1].ask("GET", OVERVIEW, 200, headers=headers))["pending"] == 4


async def test_many_who_look_cost_one_answer(cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counted(self: ScheduleTable) -> Any:
        nonlocal asked
        asked += 1
        return whole.fget(self)

    whole: Any = ScheduleTable.counts
    monkeypatch.setattr(ScheduleTable, "counts", property(counted))
    monkeypatch.setattr(overview, "FRESH_S", 60.0)
    answers = await asyncio.gather(*(workers[0].json(OVERVIEW) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert asked == len(cluster.tables())


async def test_only_the_largest_are_named_and_the_sums_have_all(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_GROUPS", 3)
    monkeypatch.setattr(overview, "MOST_NAMED", 2)
    for tenant in range(5):
        for number in range(tenant + 1):
            cluster.put(f"{tenant}-{number}", tenant=f"t{tenant}")
    document = await workers[1].json(OVERVIEW)
    assert document["pending"] == 15
    assert document["tenants"] == [{"tenant": "t4", "pending": 5}, {"tenant": "t3", "pending": 4}]
    assert document["complete"] is False


async def test_the_last_hour_is_that_of_all_workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    look, hours = LastHour.look, []

    def noted(self: LastHour, now: int, lanes: Any) -> None:
        hours.append(self)
        look(self, now, lanes)

    monkeypatch.setattr(LastHour, "look", noted)
    workers = await cluster.start([0, 2], [1, 3])
    for number, hour in enumerate(dict.fromkeys(hours)):
        for lane in (0, 1):
            status = LaneStatus(topic=TOPIC, partition=9, state="running", outcomes={"scheduled": 60 * (number + lane)})
            look(hour, NOW + lane * SLOT_MS, [status])
    cluster.clock.advance(2 * SLOT_MS)
    samples = (await workers[0].json(OVERVIEW))["hour"]
    assert [(each["at"], each["accepted"], each["p99"]) for each in samples] == [
        (NOW, 2.0, None),
        (NOW + SLOT_MS, 4.0, None),
    ]


async def test_a_token_for_no_tenant_sees_nothing_of_any_worker(cluster: Any, workers: Any) -> None:
    for partition in range(4):
        cluster.put(f"{partition}", partition=partition, tenant="acme")
    await workers[0].access.store.make_peer_secret()

    class OfNobody:
        async def identity(self, text: str) -> Identity:
            assert text == "jwt"
            return Identity("oidc:x", Role.READ, frozenset())

    for worker in workers:
        worker.access.oidc = OfNobody()
        document = await worker.ask("GET", OVERVIEW, 200, headers={"Authorization": "Bearer jwt"})
        assert (document["pending"], document["states"], document["tenants"], document["missing"]) == (0, {}, [], [])


async def test_a_token_for_hundreds_of_tenants_sees_those_of_all_workers(cluster: Any, workers: Any) -> None:
    tenants = [f"{number:064}" for number in range(300)]
    for number, tenant in enumerate(tenants):
        cluster.put(f"{number}", partition=number % 4, tenant=tenant)
    cluster.put("other", tenant="other")
    headers = {"Authorization": f"Bearer {await cluster.token('read', *tenants)}"}
    document = await workers[0].ask("GET", OVERVIEW, 200, headers=headers)
    assert (document["pending"], document["missing"], document["complete"]) == (300, [], True)


async def test_another_worker_has_to_say_whom_it_asks_about(workers: Any) -> None:
    local = {"Light-Scheduler-Scope": "local"}
    for query in ("", "?all_tenants=false", "?all_tenants=true&tenant=a"):
        problem = await workers[0].ask("GET", OVERVIEW + query, 400, headers=local)
        assert "all_tenants=true" in problem["detail"]


@pytest.mark.parametrize("size", [1, 2, 100, 9_000])
def test_questions_fit_into_a_request_line_and_name_each_tenant_once(size: int) -> None:
    tenants = frozenset(f"{'é' * (number % 60)}{number}" for number in range(size))
    asked = [*questions(OVERVIEW, tenants, name="a" * 500)]
    assert all(len(path) < 8_000 for _, path in asked)
    named = [dict.fromkeys(URL(path).query.getall("tenant")) for _, path in asked]
    assert [frozenset(each) for each in named] == [part for part, _ in asked]
    assert sorted(tenant for each in named for tenant in each) == sorted(tenants)


async def test_groups_are_counted_slice_by_slice_as_they_were_when_that_began(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        cluster.put(f"{number}", tenant=f"t{number}")
    monkeypatch.setattr(slices, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    rest, rests = slices.LoopTime.rest, []

    async def noted(self: slices.LoopTime) -> None:
        rests.append(self)
        cluster.put(f"new-{len(rests)}", tenant=f"new-{len(rests)}")
        await rest(self)

    monkeypatch.setattr(slices.LoopTime, "rest", noted)
    share = await overview.own_overview(workers[0].lanes, workers[0].lanes, [], None)
    assert len(rests) >= 20
    assert share.counts[share.lanes.index((TOPIC, 0))].states == {"pending": 20}
