"""light-4j's list of tasks over a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from support.foreign import LIGHT4J_VALUE, avro
from support.web_cluster.cluster import with_topics
from support.web_cluster.schedules import NOW, TOPIC, make_entry
from support.web_cluster.schedules import forget as forget_in
from support.web_cluster.schedules import put as put_into

from light_scheduler.access import ANYONE
from light_scheduler.model import Cron, FixedRate
from light_scheduler.tables import MemoryStore, ScheduleTable
from light_scheduler.web.cluster import bounded
from light_scheduler.web.light4j import handlers
from light_scheduler.web.light4j.handlers import Light4jHandlers
from light_scheduler.web.light4j.operations import LIGHT4J_OPERATIONS
from light_scheduler.web.limits.shares import HOLDER

MINUTE, HOUR = 60_000, 3_600_000
PATH = "/schedulers"
HOST = "networknt.com"


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:light4j"


def value(name: str = "a", id: int | None = None, **given: Any) -> bytes:
    """Return a record's value; `id` is that of its schema in a registry."""
    frequency = {"timeUnit": "MINUTES", "time": 2}
    told = {"host": HOST, "name": name, "action": "INSERT", "frequency": frequency, "topic": "reminders", "start": NOW}
    return avro(LIGHT4J_VALUE, {**told, "data": None, **given}, id)


def put(
    cluster: Any, name: str, *, host: str = HOST, unit: str = "MINUTES", time: int = 2, partition: int = 0, **given: Any
) -> None:
    """Store a task as the dialect does, with `given` in place of what its record or its schedule has."""
    ms = {"SECONDS": 1_000, "MINUTES": MINUTE, "HOURS": HOUR, "DAYS": 24 * HOUR}[unit]
    trigger = given.pop("trigger", FixedRate(time * ms, NOW - NOW % ms))
    stored = {key: given.pop(key) for key in ("payload", "target") if key in given}
    frequency = {"timeUnit": unit, "time": time}
    fields = {"payload": value(name, host=host, frequency=frequency, **given), "target": "reminders", **stored}
    cluster.put(name, tenant=host, partition=partition, due=NOW, trigger=trigger, **fields)


def forget(cluster: Any, name: str, *, partition: int) -> None:
    table = cluster.tables()[TOPIC, partition]
    entry = table.get(HOST, name)
    assert entry is not None
    forget_in(table, entry)


async def names(worker: Any, **parameters: str) -> list[str]:
    return [each["name"] for each in await worker.json(PATH, **parameters)]


async def test_a_task_has_the_fields_of_its_definition(cluster: Any, workers: Any) -> None:
    put(cluster, "a", partition=1, data={"key1": "value1"})
    expected = {
        "host": HOST,
        "name": "a",
        "action": "INSERT",
        "frequency": {"timeUnit": "MINUTES", "time": 2},
        "topic": "reminders",
        "start": NOW,
        "data": {"key1": "value1"},
    }
    for worker in workers:
        assert await worker.json(PATH) == [expected]
    assert list((await workers[0].json(PATH))[0]) == list(expected), "in the order of its schema, as there"


async def test_what_is_null_in_a_record_is_left_out_but_for_the_start(cluster: Any, workers: Any) -> None:
    put(cluster, "a", start=None, action="UPDATE", trigger=FixedRate(2 * MINUTE, NOW + MINUTE))
    (shown,) = await workers[0].json(PATH)
    assert (shown["start"], shown["action"], "data" in shown) == (NOW + MINUTE, "UPDATE", False)


async def test_tasks_are_found_by_host_name_and_unit(cluster: Any, workers: Any) -> None:
    put(cluster, "b", unit="HOURS", partition=2)
    put(cluster, "a", partition=1)
    put(cluster, "a", host="acme", unit="SECONDS", time=90, partition=3)
    for worker in workers:
        assert [(each["host"], each["name"]) for each in await worker.json(PATH)] == [
            *(("acme", "a"), (HOST, "a"), (HOST, "b")),
        ]
        assert await names(worker, host=HOST) == ["a", "b"]
        assert [each["host"] for each in await worker.json(PATH, name="a")] == ["acme", HOST]
        assert await names(worker, host=HOST, name="b") == ["b"]
        assert await names(worker, unit="SECONDS") == ["a"]
        assert await names(worker, host=HOST, unit="HOURS") == ["b"]
        for parameters in ({"host": "nobody"}, {"name": "c"}, {"unit": "DAYS"}, {"host": "acme", "name": "b"}):
            assert await worker.json(PATH, **parameters) == []


async def test_a_worker_lists_its_own_tasks_if_it_is_asked_to(cluster: Any, workers: Any) -> None:
    for partition in range(4):
        put(cluster, f"{partition}", partition=partition)
    assert [await names(worker, local="true") for worker in workers] == [["0", "2"], ["1", "3"]]
    assert await names(workers[0], local="true", name="1") == []


async def test_a_task_that_was_rescheduled_is_shown_as_it_is(cluster: Any, workers: Any) -> None:
    put(cluster, "rate", data={"a": "b"}, trigger=FixedRate(3 * HOUR, NOW - HOUR))
    put(cluster, "cron", trigger=Cron("0 9 * * *"))
    (shown,) = await workers[0].json(PATH)
    assert (shown["frequency"], shown["start"], shown["data"]) == (
        {"timeUnit": "HOURS", "time": 3},
        NOW - HOUR,
        {"a": "b"},
    )


@pytest.mark.parametrize("payload", [None, b"", b"no task", value("of another name")])
async def test_a_schedule_whose_payload_is_no_task_of_its_own_is_shown_without_data(
    cluster: Any, workers: Any, payload: bytes | None
) -> None:
    put(cluster, "a", payload=payload, trigger=FixedRate(90_000, NOW))
    (shown,) = await workers[0].json(PATH)
    assert shown == {
        "host": HOST,
        "name": "a",
        "action": "INSERT",
        "frequency": {"timeUnit": "SECONDS", "time": 90},
        "topic": "reminders",
        "start": NOW,
    }


async def test_a_task_that_a_registry_frames_is_read_too(cluster: Any, workers: Any) -> None:
    put(cluster, "a", payload=value(id=7, data={"a": "b"}))
    (shown,) = await workers[0].json(PATH)
    assert shown["data"] == {"a": "b"}


async def test_only_topics_of_the_dialect_are_listed(cluster: Any) -> None:
    cluster.settings = with_topics(f"{TOPIC}:light4j,other")
    (worker,) = await cluster.start([0])
    cluster.distribution[worker.url]["other"] = [0]
    worker.lanes.all["other", 0] = ScheduleTable(MemoryStore())
    worker.lanes.states["other", 0] = "running"
    put_into(worker.lanes.all["other", 0], make_entry("native", trigger=FixedRate(MINUTE, NOW)))
    put(cluster, "a")
    assert await names(worker) == ["a"]


async def test_a_token_shows_the_tasks_of_its_tenants(cluster: Any, workers: Any) -> None:
    put(cluster, "a", partition=0)
    put(cluster, "b", host="acme", partition=1)
    headers = {"Authorization": f"Bearer {await cluster.token('read', 'acme')}"}
    found = await workers[0].ask("GET", PATH, 200, headers=headers)
    assert [each["host"] for each in found] == ["acme"]
    for host in (HOST, "nobody"):
        await workers[0].ask("GET", f"{PATH}?host={host}", 404, headers=headers)


async def test_a_token_reads_the_tasks_of_its_tenants_only_whatever_the_others_have(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put(cluster, f"{number:02}", host="large", partition=number % 4)
    for partition in range(4):
        put(cluster, f"few-{partition}", host="small", partition=partition)
    monkeypatch.setattr(bounded, "REQUEST_BUDGET", 10)
    by_tenant = {tenant: f"Bearer {await cluster.token('read', tenant)}" for tenant in ("small", "large")}
    for worker in workers:
        headers = {"Authorization": by_tenant["small"]}
        found = await worker.ask("GET", PATH, 200, headers=headers)
        assert [each["name"] for each in found] == [f"few-{partition}" for partition in range(4)]
        assert len(await worker.ask("GET", f"{PATH}?local=true", 200, headers=headers)) == 2
        assert await worker.ask("GET", f"{PATH}?name=00&unit=MINUTES", 200, headers=headers) == []
        (one,) = await worker.ask("GET", f"{PATH}?name=few-3&unit=MINUTES", 200, headers=headers)
        assert one["host"] == "small"
        await worker.ask("GET", PATH, 400, headers={"Authorization": by_tenant["large"]})


async def test_a_token_for_very_many_tenants_shows_all_of_their_tasks(cluster: Any, workers: Any) -> None:
    tenants = [f"tenant-{'x' * 40}-{number}" for number in range(300)]
    for number, tenant in enumerate(tenants):
        put(cluster, "a", host=tenant, partition=number % 4)
    put(cluster, "a", host="other", partition=3)
    headers = {"Authorization": f"Bearer {await cluster.token('read', *tenants)}"}
    found = await workers[0].ask("GET", PATH, 200, headers=headers)
    assert [each["host"] for each in found] == sorted(tenants)


async def test_another_worker_has_to_say_whom_it_asks_about(workers: Any) -> None:
    local = {"Light-Scheduler-Scope": "local"}
    for query in ("", "?name=a", "?all_tenants=true&tenant=a"):
        assert "all_tenants=true" in (await workers[0].ask("GET", PATH + query, 400, headers=local))["detail"]


@pytest.mark.parametrize(("name", "text"), [("unit", "WEEKS"), ("host", "a b"), ("colour", "red")])
async def test_a_parameter_that_cannot_be_is_named(workers: Any, name: str, text: str) -> None:
    assert (await workers[0].json(PATH, 400, **{name: text}))["parameter"] == name


async def test_what_a_lane_lacks_is_named(cluster: Any, workers: Any) -> None:
    put(cluster, "a")
    workers[1].lanes.states[TOPIC, 3] = "restoring"
    assert [each["partition"] for each in (await workers[0].json(PATH, 503))["missing"]] == [3]
    assert await names(workers[0], local="true") == ["a"]


@pytest.mark.parametrize("bound", ["REQUEST_BUDGET", "MOST_BYTES"])
async def test_a_list_that_is_too_long_is_refused_by_whichever_worker_is_asked(
    cluster: Any, workers: Any, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put(cluster, f"{number:02}", partition=3)
    put(cluster, "few", host="acme", partition=3)
    monkeypatch.setattr(bounded, "SLICE_BUDGET", 10)
    monkeypatch.setattr(bounded, bound, {"REQUEST_BUDGET": 30, "MOST_BYTES": 3_000}[bound])
    for worker in workers:
        assert (await worker.json(PATH, 400))["parameter"] == "host"
        assert await names(worker, host="acme") == ["few"]
        assert await names(worker, name="07") == ["07"]


async def test_a_list_is_refused_that_fits_for_each_worker_and_is_too_long_for_all_together(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put(cluster, f"{number:02}", partition=number % 4)
    size = 20 * len(await encoded_task(workers[0]))
    for most, status in ((2 * size, 200), (2 * size - 1, 400)):
        monkeypatch.setattr(handlers, "MOST_BYTES", most)
        monkeypatch.setattr(bounded, "MOST_BYTES", size)
        for worker in workers:
            assert len(await names(worker, local="true")) == 20
            for parameters in ({}, {"host": HOST}):
                answer = await worker.json(PATH, status, **parameters)
                assert len(answer) == 40 if status == 200 else answer["parameter"] == "host"
            assert await names(worker, host=HOST, name="07") == ["07"]


async def encoded_task(worker: Any) -> bytes:
    """Return a task as a worker sends it; all have the same size."""
    async with worker.client.get(PATH, params={"name": "07"}) as response:
        body: bytes = await response.read()
        return body[1:-1]


async def test_a_list_that_fits_exactly_is_shown_and_one_task_more_is_refused(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "REQUEST_BUDGET", 30)
    monkeypatch.setattr(bounded, "SLICE_BUDGET", 20)
    for number in range(30):
        put(cluster, f"{number:02}", partition=number % 2 * 2, host=f"host-{number % 3}")
    assert len(await names(workers[1])) == 30
    for partition in (0, 2):
        put(cluster, "more", partition=partition)
        assert (await workers[1].json(PATH, 400))["parameter"] == "host"
        forget(cluster, "more", partition=partition)
    assert len(await names(workers[1])) == 30


async def test_all_tasks_of_a_host_are_read_slice_by_slice(cluster: Any, workers: Any, rests: list[Any]) -> None:
    expected = [f"{number:02}" for number in range(35)]
    for name in expected:
        put(cluster, name, partition=2)
    put(cluster, "other", host="acme", partition=2)
    assert await names(workers[1], host=HOST) == expected
    assert len(rests) >= len(expected)


async def test_hosts_are_found_slice_by_slice_within_the_limit_of_a_request(
    cluster: Any, workers: Any, rests: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(35):
        put(cluster, f"{number}", host=f"host-{number}")
    assert await names(workers[0], name="7") == ["7"]
    assert len(rests) >= 2 * 35, "for each host once to find it, and once to look the name up"
    monkeypatch.setattr(bounded, "REQUEST_TIME_S", 0.0)
    rests.clear()
    refusal = await workers[0].json(PATH, 400, name="7", local="true")
    assert (refusal["parameter"], len(rests)) == ("host", 1), "it stops where its time is used up"


async def test_what_workers_ask_each_other_counts_for_the_hosts_that_were_asked_for(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders, own = [], Light4jHandlers._own

    async def noted(handlers: Light4jHandlers, wanted: Any) -> Any:
        holders.append(HOLDER.get())
        return await own(handlers, wanted)

    monkeypatch.setattr(Light4jHandlers, "_own", noted)
    put(cluster, "a", partition=2)
    assert await names(workers[0], host=HOST) == ["a"]
    assert (len(holders), set(holders)) == (2, {ANYONE.name, frozenset({HOST})})


async def test_the_openapi_document_has_the_operation(workers: Any) -> None:
    described = (await workers[0].json("/api/v1/openapi.json"))["paths"][PATH]["get"]
    assert [each["name"] for each in described["parameters"]] == ["host", "name", "unit", "local"]
    assert {operation.path for operation in LIGHT4J_OPERATIONS} == {PATH}


async def test_without_a_topic_of_the_dialect_there_is_none_of_it(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    await worker.json(PATH, 404)
