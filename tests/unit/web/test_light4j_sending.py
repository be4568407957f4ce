"""Tasks that are sent to light-4j's endpoint, over a cluster."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from support.foreign import LIGHT4J_CLASS_VALUE, LIGHT4J_KEY, task_key
from support.registry import FakeRegistry
from support.web_cluster.schedules import NOW, TOPIC

from light_scheduler.host.ports import free_port
from light_scheduler.model import Cron, FixedRate
from light_scheduler.settings import load_settings
from light_scheduler.web.light4j import own_answers
from light_scheduler.web.light4j.own_answers import LaneTasks
from light_scheduler.wire import partition_for

MINUTE = 60_000
PATH = "/schedulers"
HOST = "networknt.com"
# The request of light-4j's own documentation.
TASK: dict[str, Any] = {
    "host": HOST,
    "name": "market-192.168.1.1-health-check",
    "action": "INSERT",
    "frequency": {"timeUnit": "MINUTES", "time": 2},
    "topic": "controller-health-check",
    "data": {"key1": "value1", "key2": "value2"},
}
NAME = TASK["name"]


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:light4j"


async def send(worker: Any, status: int = 201, headers: Any = None, **members: Any) -> Any:
    return await worker.ask("POST", PATH, status, {**TASK, **members}, headers=headers)


def place(cluster: Any, name: str = NAME, host: str = HOST) -> int | None:
    """Return the partition that a task is in."""
    found = [lane[1] for lane, table in cluster.tables().items() if table.get(host, name) is not None]
    assert len(found) < 2
    return found[0] if found else None


async def test_a_task_that_is_sent_is_listed_as_light_4j_lists_it(cluster: Any, workers: Any) -> None:
    assert await send(workers[0]) is None, "its answer has no body"
    expected = {**TASK, "start": NOW - NOW % MINUTE + MINUTE}
    for worker in workers:
        assert await worker.json(PATH) == [expected]
    assert place(cluster) == partition_for(task_key(NAME), 4), "as its producer's partitioner chooses"


async def test_the_record_is_what_its_own_endpoint_writes(workers: Any) -> None:
    await send(workers[0], start=NOW + 1)
    (record,) = workers[0].commands.records
    assert (record.key, record.headers) == (task_key(NAME), [])
    written = fastavro.schemaless_reader(BytesIO(record.value), LIGHT4J_CLASS_VALUE, None)
    assert written == {**TASK, "start": NOW + MINUTE - NOW % MINUTE}


async def test_milliseconds_start_when_they_are_told_to(cluster: Any, workers: Any) -> None:
    await send(workers[0], frequency={"timeUnit": "MILLISECONDS", "time": 1_500}, start=NOW + 7)
    (shown,) = await workers[1].json(PATH)
    assert shown["start"] == NOW + 7
    (entry,) = [table.get(HOST, NAME) for table in cluster.tables().values() if table.get(HOST, NAME)]
    assert (entry.schedule.trigger, entry.progress.due) == (FixedRate(1_500, NOW + 7), NOW + 1_507)


async def test_an_update_goes_to_where_the_task_is(cluster: Any, workers: Any) -> None:
    await send(workers[0])
    elsewhere = (place(cluster) + 1) % 4  # type: ignore[operator]
    (entry,) = [table.get(HOST, NAME) for table in cluster.tables().values() if table.get(HOST, NAME)]
    await send(workers[0], action="DELETE")
    assert place(cluster) is None
    cluster.put(
        NAME,
        tenant=HOST,
        partition=elsewhere,
        trigger=entry.schedule.trigger,
        payload=entry.schedule.payload,
        target="reminders",
    )
    for action in ("UPDATE", "INSERT"):
        await send(workers[1], action=action, frequency={"timeUnit": "HOURS", "time": 3})
        assert place(cluster) == elsewhere
    (shown,) = await workers[0].json(PATH)
    assert (shown["frequency"], shown["topic"]) == ({"timeUnit": "HOURS", "time": 3}, TASK["topic"])
    await send(workers[1], action="DELETE")
    assert await workers[0].json(PATH) == []


async def test_a_task_of_a_worker_of_an_earlier_version_is_found(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_answers, "LaneTasks", lambda *, lane, rows, has_name: LaneTasks(lane=lane, rows=rows))
    await send(workers[0])
    here = place(cluster)
    await send(workers[1], action="UPDATE", frequency={"timeUnit": "HOURS", "time": 3})
    assert place(cluster) == here
    await send(workers[1], action="DELETE")
    assert place(cluster) is None


async def test_a_task_that_was_rescheduled_to_what_no_task_says_is_still_found(cluster: Any, workers: Any) -> None:
    elsewhere = (partition_for(task_key(NAME), 4) + 1) % 4
    cluster.put(NAME, tenant=HOST, partition=elsewhere, trigger=Cron("0 9 * * *"))
    assert await workers[0].json(PATH) == []
    await send(workers[1], action="DELETE")
    assert place(cluster) is None


async def test_a_number_without_a_fraction_is_an_integer_however_it_is_written(workers: Any) -> None:
    await send(workers[0], frequency={"timeUnit": "SECONDS", "time": 751.0}, start=1_700_000_000_000.0)
    (shown,) = await workers[0].json(PATH)
    assert (shown["frequency"], shown["start"]) == ({"timeUnit": "SECONDS", "time": 751}, 1_700_000_001_000)
    for time in (751.5, 1e300, True, "751"):
        await send(workers[0], 400, frequency={"timeUnit": "SECONDS", "time": time})


@pytest.mark.parametrize("action", ["UPDATE", "DELETE"])
async def test_a_change_of_what_is_not_there_is_not_found(workers: Any, action: str) -> None:
    problem = await send(workers[0], 404, action=action)
    assert NAME in problem["detail"]
    assert workers[0].commands.records == []


@pytest.mark.parametrize(
    ("members", "parameter"),
    [
        ({"host": "a b"}, "host"),
        ({"name": ""}, "name"),
        ({"topic": "a b"}, "topic"),
        ({"frequency": {"timeUnit": "DAYS", "time": 0}}, "frequency.time"),
        ({"frequency": {"timeUnit": "DAYS", "time": 2**40}}, "record value"),
        ({"start": 10**15}, "start"),
        ({"action": "PATCH"}, "body"),
        ({"frequency": {"timeUnit": "WEEKS", "time": 1}}, "body"),
        ({"frequency": None}, "body"),
        ({"data": {"a": 1}}, "body"),
        ({"start": -1}, "body"),
    ],
)
async def test_what_is_wrong_is_named_and_not_sent(workers: Any, members: dict[str, Any], parameter: str) -> None:
    problem = await send(workers[0], 400, **members)
    assert problem["parameter"] == parameter, problem
    assert workers[0].commands.records == []


async def test_members_that_light_4j_does_not_know_are_ignored(workers: Any) -> None:
    await send(workers[0], colour="red")
    (task,) = await workers[0].json(PATH)
    assert (task["name"], "colour" in task) == (NAME, False)


async def test_a_token_writes_tasks_of_its_hosts_only_and_needs_the_right(cluster: Any, workers: Any) -> None:
    tokens = {role: await cluster.token(role, HOST) for role in ("read", "write")}
    headers = {role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()}
    await send(workers[0], 401)
    await send(workers[0], 403, headers["read"])
    await send(workers[0], 404, headers["write"], host="acme")
    await send(workers[0], 403, headers["write"], topic=TOPIC)
    await send(workers[0], 201, headers["write"])
    (record,) = workers[0].commands.records
    assert [name for name, _ in record.headers] == ["schedule-requested-by"]
    (entry,) = [table.get(HOST, NAME) for table in cluster.tables().values() if table.get(HOST, NAME)]
    assert entry.schedule.headers == [], "the message has no header of a worker's"


@pytest.mark.parametrize(
    ("strategy", "subjects"),
    [
        ("topic", [f"{TOPIC}-key", f"{TOPIC}-value"]),
        ("record", ["com.networknt.scheduler.TaskDefinitionKey", "com.networknt.scheduler.TaskDefinition"]),
        (
            "topic-record",
            [
                f"{TOPIC}-com.networknt.scheduler.TaskDefinitionKey",
                f"{TOPIC}-com.networknt.scheduler.TaskDefinition",
            ],
        ),
    ],
)
async def test_with_a_registry_tasks_are_framed_with_the_ids_of_its_subjects(
    cluster: Any, commands_topics: str, strategy: str, subjects: list[str]
) -> None:
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address:
        given = {"schema_registry": address, "schema_registry_subjects": strategy}
        cluster.settings = load_settings({"commands_topics": commands_topics, **given}, environment={})
        (worker,) = await cluster.start([0, 1, 2, 3])
        await send(worker)
        await send(worker, action="UPDATE")
    assert list(registry.subjects) == subjects, "each is asked for once"
    assert [registry.schemas[id] for id in registry.subjects.values()] == [LIGHT4J_KEY, LIGHT4J_CLASS_VALUE]
    for record in worker.commands.records:
        assert (record.key[:5], record.value[:5]) == (b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x02")
    assert worker.commands.records[0].key == task_key(NAME, id=1)
    assert [each["name"] for each in await worker.json(PATH)] == [NAME]


@pytest.mark.parametrize("failing", [500, 403, None])
async def test_a_registry_that_gives_no_id_is_named(cluster: Any, commands_topics: str, failing: int | None) -> None:
    registry, port = FakeRegistry({}), free_port()
    registry.failing = failing
    address = f"http://127.0.0.1:{port}"
    cluster.settings = load_settings({"commands_topics": commands_topics, "schema_registry": address}, environment={})
    (worker,) = await cluster.start([0, 1])
    if failing is None:
        problem = await send(worker, 503)
    else:
        async with registry.serve(port):
            problem = await send(worker, 503)
    assert f"{address} has no id for {TOPIC}-key" in problem["detail"]
    assert worker.commands.records == []
