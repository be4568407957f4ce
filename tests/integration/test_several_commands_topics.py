"""One application with commands topics of several dialects: the identity of a schedule is its tenant and id alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from support.application import Application
from support.foreign import etf1_headers
from support.waiting import eventually

from light_scheduler.cli import cli
from light_scheduler.client.bulk_results import NotInAllTopics
from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

Run = Callable[..., dict[str, Any]]

HOUR = 3_600_000
IN_JSON = [f"json-{number}" for number in range(6)]
IN_NATIVE = [f"native-{number}" for number in range(6)]


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    name = f"s{tmp_path.name[-8:]}-{SystemClock().now()}"
    topics = f"{name}-json:json,{name}-native,{name}-etf1:etf1"
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=topics)
    yield application
    application.close()


@pytest.fixture
async def url(application: Application) -> str:
    """A worker, with six schedules in the topic of JSON commands, six in that of native ones, and one in etf1's."""
    worker = await application.start_worker()
    in_json, in_native, in_etf1 = (source.name for source in application.settings.inputs)
    due = SystemClock().now() + HOUR
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    target = {"topic": application.target}
    for id in IN_JSON:
        body = json.dumps({"id": id, "trigger": {"at": due}, "target": target}).encode()
        await producer.send_and_wait(in_json, body, f"key of {id}".encode())
    for id in IN_NATIVE:
        headers = [("schedule-id", id), ("schedule-at", str(due)), ("schedule-target-topic", application.target)]
        await producer.send_and_wait(
            in_native, b"x", f"key of {id}".encode(), headers=[(name, text.encode()) for name, text in headers]
        )
    await producer.send_and_wait(in_etf1, b"x", b"foreign", headers=etf1_headers(due, application.target))
    await stop_producer(producer)
    await pending(worker.url, 13)
    return worker.url


async def pending(url: str, count: int, state: str = "pending") -> None:
    """Wait until so many schedules are in a state."""

    async def are_as_many() -> bool:
        path = f"{url}/api/v1/tenants/default/schedules?state={state}"
        async with aiohttp.ClientSession() as session, session.get(path) as response:
            return len((await response.json())["schedules"]) == count

    await eventually(are_as_many, every=0.05, what=f"{count} schedules that are {state}")


@pytest.fixture
def run(application: Application, url: str) -> Run:
    settings = application.settings
    topics = ",".join(f"{source.name}:{source.dialect}" for source in settings.inputs)
    connection = ("--broker", f"kafka://{application.bootstrap_servers}", "--app-id", settings.app_id)

    def run(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
        all_arguments = [*arguments, *connection, "--commands-topics", topics, "--url", url, "--json"]
        result = CliRunner().invoke(cli, all_arguments, catch_exceptions=False)
        assert result.exit_code == exit_code, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    return run


async def test_the_command_line_finds_a_schedule_in_the_topic_of_any_dialect(run: Run, url: str) -> None:
    for id in ("json-1", "native-1", "foreign"):
        assert (await asyncio.to_thread(run, "pause", id))["outcome"] == "paused"
    await pending(url, 3, "paused")
    for id in ("json-1", "native-1", "foreign"):
        assert (await asyncio.to_thread(run, "reschedule", id, "--after", "2h"))["outcome"] == "rescheduled"
        assert (await asyncio.to_thread(run, "resume", id))["outcome"] == "resumed"
        assert (await asyncio.to_thread(run, "cancel", id))["outcome"] == "cancelled"
        assert (await asyncio.to_thread(run, "cancel", id, exit_code=1))["outcome"] == "not_found"
    await pending(url, 10)


async def test_the_command_line_replaces_a_schedule_where_it_is(run: Run, url: str, application: Application) -> None:
    again = ("schedule", "--id", "json-2", "--target-topic", application.target, "--after", "2h", "--payload", "ä")
    answer = await asyncio.to_thread(run, *again, "--header", "x=1")
    assert (answer["outcome"], answer["version"]) == ("updated", 2)
    path = f"{url}/api/v1/tenants/default/schedules/json-2"
    async with aiohttp.ClientSession() as session, session.get(path) as response:
        found = await response.json()
    assert (found["payload"], found["headers"]) == ({"text": "ä"}, [{"name": "x", "value": {"text": "1"}}])
    await pending(url, 13)


async def test_bulk_commands_reach_all_topics_of_our_own_dialects(run: Run, url: str) -> None:
    path = "/api/v1/tenants/default/schedules"
    async with aiohttp.ClientSession(url) as session:
        async with session.post(f"{path}:pause", json={"id": "*"}) as response:
            answer = await response.json()
        assert (response.status, answer["outcome"], answer["count"]) == (200, "paused", 12)
        async with session.post(f"{path}:resume?wait=false", json={"id": "*"}) as response:
            assert response.status == 202
        await pending(url, 13)
        async with session.post(f"{path}:cancel", json={"id": "json-*"}) as response:
            answer = await response.json()
        assert (answer["outcome"], answer["count"]) == ("cancelled", 6)

    answer = await asyncio.to_thread(run, "cancel", "--all", "--yes")
    assert (answer["outcome"], answer["count"]) == ("cancelled", 6)
    await pending(url, 1)


async def test_if_a_topic_is_missing_the_command_line_says_where_a_bulk_command_was_carried_out(
    application: Application, url: str
) -> None:
    settings, missing = application.settings, f"{application.settings.app_id}-missing"
    native = next(source.name for source in settings.inputs if source.dialect == "native")
    arguments = ["pause", "--all", "--yes", "--timeout", "5s", "--commands-topics", f"{native},{missing}:json"]
    place = ["--broker", settings.broker, "--app-id", settings.app_id, "--url", url]
    result = await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, *place])
    assert isinstance(result.exception, NotInAllTopics)
    assert str(result.exception).startswith(f"It was carried out in {native}. {missing}: ")
    await pending(url, 6, "paused")
