"""Schedules of other schedulers whose ids end in `*`, which selects several schedules elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from support.web_cluster.schedules import NOW, TOPIC

ID = "order-*"
PATH = "/api/v1/tenants/default/schedules/order-%2A"
HOUR = 3_600_000


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:etf1"


@pytest.fixture
def starred(cluster: Any, workers: Any) -> Any:
    """Return a worker of a cluster that has such a schedule, in a partition of its own, and others that `*` selects."""
    for number, id in enumerate([ID, "order-1", "order-2", "order-"]):
        cluster.put(id, partition=number, due=NOW + HOUR, version=number + 5)
    return workers[1]


async def ids_of(worker: Any) -> list[str]:
    return [each["id"] for each in (await worker.json("/api/v1/tenants/default/schedules"))["schedules"]]


async def test_it_is_cancelled_and_no_other(starred: Any) -> None:
    result = await starred.ask("DELETE", PATH, 200)
    assert (result["outcome"], result["id"], "count" in result) == ("cancelled", ID, False)
    assert await ids_of(starred) == ["order-", "order-1", "order-2"]


@pytest.mark.parametrize(
    ("command", "body", "outcome"),
    [
        ("pause", {}, "paused"),
        ("trigger", {}, "triggered"),
        ("reschedule", {"trigger": {"at": NOW + 2 * HOUR}}, "rescheduled"),
    ],
)
async def test_it_is_controlled_and_no_other(
    cluster: Any, starred: Any, command: str, body: dict[str, Any], outcome: str
) -> None:
    result = await starred.ask("POST", f"{PATH}/{command}", 200, body)
    assert (result["outcome"], "count" in result) == (outcome, False)
    (seen,) = starred.commands.seen
    assert (seen.id, seen.selection, seen.expected_version) == (ID, None, 5)


@pytest.mark.parametrize(("version", "status"), [(5, 200), (4, 409)])
async def test_a_version_can_be_named(starred: Any, version: int, status: int) -> None:
    await starred.ask("DELETE", f"{PATH}?expected_version={version}", status)
    assert (ID in await ids_of(starred)) == (status != 200)


async def test_without_waiting_it_is_sent_with_its_version(starred: Any) -> None:
    await starred.ask("DELETE", f"{PATH}?wait=false", 202)
    assert ID not in await ids_of(starred)


async def test_one_that_is_not_there_is_refused_as_a_selection(starred: Any) -> None:
    problem = await starred.ask("DELETE", "/api/v1/tenants/default/schedules/%2A", 400)
    assert (problem["parameter"], "this path is for one schedule" in problem["detail"]) == ("id", True)
    await starred.ask("DELETE", "/api/v1/tenants/default/schedules/%2A", 412, headers={"If-Match": "*"})
    assert starred.commands.seen == []


@pytest.mark.parametrize(
    ("path", "body", "parameter"),
    [
        ("/pause", {"labels": {"a": "b"}}, "labels"),
        ("/pause", {"expected_version": 5, "labels": {"a": "b"}}, "labels"),
        ("/pause", {"labels": {}}, "labels"),
    ],
)
async def test_what_narrows_a_selection_is_refused(
    starred: Any, path: str, body: dict[str, Any], parameter: str
) -> None:
    assert (await starred.ask("POST", PATH + path, 400, body))["parameter"] == parameter


async def test_it_is_never_made_over_http(starred: Any) -> None:
    body = {"trigger": {"at": NOW + HOUR}, "target": {"topic": "out"}}
    assert (await starred.ask("PUT", PATH, 400, body))["parameter"] == "id"
