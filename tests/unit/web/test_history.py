"""The history of one id over HTTP, and how far a request looks back for it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from light_scheduler.errors import BrokerError
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.web import looking_back
from light_scheduler.wire import encode_history, history_key

NOW = 1_800_000_000_000
HOUR = 3_600_000
TOPIC = "light-scheduler-history"
PATH = "/api/v1/tenants/default/schedules/a/history"


def record(
    cluster: Any,
    event: str,
    at: int = NOW,
    *,
    id: str = "a",
    tenant: str = "default",
    partition: int = 0,
    **fields: Any,
) -> HistoryEvent:
    told = {"version": 1, "due": None, "sequence": 1, "attempt": 1, "target_topic": "out", "reason": None, **fields}
    event_record = HistoryEvent(EventType(event), tenant, id, at=at, partition=partition, **told)
    cluster.topics.add(TOPIC, history_key(tenant, id), encode_history(event_record), partition=partition, at=at)
    return event_record


async def pages(worker: Any, path: str = PATH, **parameters: str) -> list[Any]:
    found = [await worker.json(path, **parameters)]
    while found[-1]["next_cursor"] is not None:
        found.append(await worker.json(path, **{**parameters, "cursor": found[-1]["next_cursor"]}))
    return found


async def test_all_that_happened_to_an_id_comes_newest_first_and_nothing_of_others(workers: Any, cluster: Any) -> None:
    expected = [
        record(cluster, "scheduled", NOW - 3 * HOUR),
        record(cluster, "updated", NOW - 2 * HOUR, version=2, by="shop", address="192.0.2.7"),
        record(cluster, "fired", NOW - HOUR, partition=1, due=NOW - HOUR),  # of another key, in another partition
    ]
    record(cluster, "scheduled", id="ab")
    record(cluster, "scheduled", tenant="other")
    cluster.topics.add(TOPIC, history_key("default", "a"), b"of somebody else")
    (page,) = await pages(workers[1])
    assert page["events"] == [msgspec.to_builtins(event) for event in reversed(expected)]
    assert page["searched_from"] == NOW - 24 * HOUR


async def test_versions_are_the_events_that_defined_it(workers: Any, cluster: Any) -> None:
    for number, event in enumerate(("scheduled", "paused", "updated", "fired")):
        record(cluster, event, NOW - HOUR + number)
    (page,) = await pages(workers[0], event="scheduled,updated")
    assert [event["event"] for event in page["events"]] == ["updated", "scheduled"]


async def test_it_looks_back_a_day_or_to_the_instant_that_is_named(workers: Any, cluster: Any) -> None:
    record(cluster, "scheduled", NOW - 30 * HOUR)
    record(cluster, "updated", NOW - HOUR)
    assert [len(page["events"]) for page in await pages(workers[0])] == [1]
    assert [len(page["events"]) for page in await pages(workers[0], since=str(NOW - 30 * HOUR))] == [2]
    assert [len(page["events"]) for page in await pages(workers[0], since="2030-01-01T00:00:00Z")] == [0]
    assert [len(page["events"]) for page in await pages(workers[0], since="0")] == [2]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_pages_have_each_event_once_however_the_partitions_mix(workers: Any, cluster: Any, limit: int) -> None:
    for number in range(20):
        record(cluster, "updated", NOW - 1_000 + number // 3, partition=number % 2, version=number + 1)
        record(cluster, "fired", NOW - 1_000 + number, id="other", partition=(number + 1) % 2)
    found = await pages(workers[0], limit=str(limit))
    assert all(len(page["events"]) <= limit for page in found)
    assert sorted(event["version"] for page in found for event in page["events"]) == list(range(1, 21))
    times = [[event["at"] for event in page["events"]] for page in found]
    assert all(each == sorted(each, reverse=True) for each in times)


async def test_a_request_reads_so_many_records_and_tells_how_far_it_came(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 100)
    record(cluster, "scheduled", NOW - 5 * HOUR)
    for number in range(1_000):
        record(cluster, "fired", NOW - 2 * HOUR + number, id="other", partition=number % 2)
    first = await workers[0].json(PATH)
    assert 100 <= cluster.topics.read <= 102
    assert first["events"] == []
    assert NOW - 2 * HOUR + 900 <= first["searched_from"] <= NOW - 2 * HOUR + 902
    found = await pages(workers[0], cursor=first["next_cursor"])
    assert [event["event"] for page in found for event in page["events"]] == ["scheduled"]
    assert cluster.topics.read == 1_001
    assert found[-1]["searched_from"] == NOW - 24 * HOUR


async def test_large_records_end_a_request_early(workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking_back, "MOST_BYTES", 10_000)
    for _ in range(200):
        record(cluster, "fired", id="other", reason="x" * 1_000)
    assert (await workers[0].json(PATH))["next_cursor"] is not None
    assert cluster.topics.read == looking_back.FIRST_PIECE


async def test_an_id_with_slashes_is_percent_encoded(workers: Any, cluster: Any) -> None:
    record(cluster, "scheduled", id="a/history")
    cluster.put("a/history")
    path = "/api/v1/tenants/default/schedules/a%2Fhistory"
    async with workers[0].client.get(path, allow_redirects=False) as response:
        assert (await response.json())["id"] == "a/history"
    (page,) = await pages(workers[0], f"{path}/history")
    assert [event["id"] for event in page["events"]] == ["a/history"]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"since": "yesterday"}, "since"),
        ({"event": "fierd"}, "event"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": looking_back.SearchPosition(0, {0: 1}).cursor()[:-3]}, "cursor"),
        ({"until": "1"}, "until"),
    ],
)
async def test_a_wrong_parameter_is_named(workers: Any, parameters: dict[str, str], named: str) -> None:
    problem = await workers[0].json(PATH, 400, **parameters)
    assert problem["parameter"] == named


async def test_a_cursor_of_somebodys_own_making_does_no_harm(workers: Any, cluster: Any) -> None:
    record(cluster, "scheduled")
    for ends in ({0: -5, 9: 3}, {0: (1 << 64) - 1}, {}):
        await workers[0].json(PATH, cursor=looking_back.SearchPosition(0, ends).cursor())


async def test_a_broker_that_does_not_answer_is_a_503_about_reading(workers: Any, cluster: Any) -> None:
    cluster.topics.failure = BrokerError("the broker did not answer in time")
    problem = await workers[0].json(PATH, 503)
    assert problem["type"].endswith(":unavailable")
    assert "cannot be read" in problem["detail"]


async def test_the_command_line_shows_the_history_and_how_far_it_looked(workers: Any, cluster: Any, run: Any) -> None:
    record(cluster, "scheduled", NOW - HOUR, due=NOW)
    record(cluster, "cancelled", NOW - 1_000, due=NOW, reason="\x1b[2J", by="shop", address="192.0.2.7")
    url = ("--url", workers[0].url)
    code, out, err = await run("history", "a", *url)
    assert code == 0
    assert out.splitlines() == [
        "2027-01-15T07:59:59.000Z cancelled     default/a v1 due 2027-01-15T08:00:00.000Z -> out (\\x1b[2J) by shop "
        "from 192.0.2.7",
        "2027-01-15T07:00:00.000Z scheduled     default/a v1 due 2027-01-15T08:00:00.000Z -> out",
    ]
    assert err == "2 events since 2027-01-14T08:00:00.000Z\n"
    code, out, _ = await run("history", "a", *url, "--event", "cancelled", "--json")
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["cancelled"]
    code, out, _ = await run("history", "a", *url, "--limit", "1", "--json")
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["cancelled"]
    code, _, err = await run("history", "a", *url, "--since", "yesterday")
    assert (code, "--since" in err) == (2, True)
