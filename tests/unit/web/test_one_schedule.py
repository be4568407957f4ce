"""One schedule by its id, wherever in the cluster it is."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from light_scheduler.model import Target
from light_scheduler.web import handlers
from light_scheduler.web.cluster import answers as cluster_answers
from light_scheduler.web.cluster.own_answers import own_matches

ONE = "/api/v1/tenants/default/schedules/"
NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"


async def get(worker: Any, id: str, *, status: int = 200) -> Any:
    """GET a schedule whose id is percent-encoded throughout."""
    url = URL(worker.url + ONE + quote(id, safe=""), encoded=True)
    async with worker.client.session.get(url) as response:
        assert response.status == status, await response.text()
        return await response.json(content_type=None)


@pytest.mark.parametrize(
    "id", ["plain", "a/b", "/", "a//b/", "..", "../x", "a b+c", "50%", "%2F", "a?b#c", "é\U0001f600", "a,b=c", "-1"]
)
async def test_any_worker_finds_any_id(cluster: Any, workers: Any, id: str) -> None:
    cluster.put(id, partition=1)
    for worker in workers:
        assert (await get(worker, id))["id"] == id


@pytest.mark.parametrize(
    ("address", "part"),
    [(f"{ONE}%E9", "path"), (f"{ONE}a%ff/why", "path"), (f"{ONE[:-1]}?id_prefix=%E9", "query"), ("/%80", "path")],
)
async def test_an_address_in_another_encoding_than_utf8_is_refused(workers: Any, address: str, part: str) -> None:
    async with workers[0].client.session.get(URL(workers[0].url + address, encoded=True)) as response:
        problem = await response.json(content_type=None)
    assert (response.status, problem["parameter"]) == (400, part)
    assert problem["detail"] == f"{part}: must be percent-encoded UTF-8"


async def test_slashes_need_no_encoding(cluster: Any, workers: Any) -> None:
    cluster.put("orders/7/reminder", partition=1)
    assert (await workers[0].json(ONE + "orders/7/reminder"))["id"] == "orders/7/reminder"


async def test_it_is_shown_in_full(cluster: Any, workers: Any) -> None:
    cluster.put(
        "a",
        partition=1,
        offset=17,
        due=NOW + 5,
        target=Target("out", key=b"k", partition=3),
        version=4,
        labels={"team": "x"},
        ttl=60_000,
        priority=7,
        payload="grüße".encode(),
        headers=[("h", b"v"), ("h", b"\xff"), ("n", None)],
    )
    assert await get(workers[0], "a") == {
        "tenant": "default",
        "id": "a",
        "version": 4,
        "state": "pending",
        "due": NOW + 5,
        "sequence": 1,
        "attempt": 1,
        "trigger": {"at": NOW + 5},
        "target": {"topic": "out", "key": "k", "partition": 3},
        "labels": {"team": "x"},
        "priority": 7,
        "ttl": 60_000,
        "source": {"topic": TOPIC, "partition": 1, "offset": 17},
        "accepted_at": NOW,
        "payload_bytes": 7,
        "misfire": "coalesce",
        "misfire_grace": 30_000,
        "acknowledgement": None,
        "awaiting": [],
        "headers": [
            {"name": "h", "value": {"text": "v"}},
            {"name": "h", "value": {"base64": "/w=="}},
            {"name": "n", "value": None},
        ],
        "partition": 1,
        "payload": {"text": "grüße"},
    }


@pytest.mark.parametrize(
    ("payload", "shown", "size"),
    [(None, None, None), (b"", {"text": ""}, 0), (b"\xff\x00", {"base64": "/wA="}, 2), (b"\x00", {"text": "\0"}, 1)],
)
async def test_payloads_lose_nothing(cluster: Any, workers: Any, payload: bytes | None, shown: Any, size: Any) -> None:
    cluster.put("a", partition=3, payload=payload)
    document = await get(workers[0], "a")
    assert (document["payload"], document["payload_bytes"]) == (shown, size)


@pytest.mark.parametrize(
    ("key", "shown"),
    [(None, {"key": None}), (b"", {"key": ""}), (b"\xff", {"key": None, "key_base64": "/w=="})],
)
async def test_keys_lose_nothing(cluster: Any, workers: Any, key: bytes | None, shown: dict[str, Any]) -> None:
    cluster.put("a", target=Target("out", key=key))
    assert (await get(workers[1], "a"))["target"] == {"topic": "out", "partition": None, **shown}


@pytest.mark.parametrize(
    ("key", "shown"), [(b"", {"partition_key": ""}), (b"\xff", {"partition_key_base64": "/w=="}), (None, {})]
)
async def test_a_key_that_chooses_the_partition_is_shown(
    cluster: Any, workers: Any, key: bytes | None, shown: dict[str, Any]
) -> None:
    cluster.put("a", target=Target("out", partition_key=key))
    document = await get(workers[1], "a")
    assert document["target"] == {"topic": "out", "key": None, "partition": None, **shown}
    (listed,) = (await workers[0].json("/api/v1/tenants/default/schedules"))["schedules"]
    assert listed["target"] == {"topic": "out", "key": None, "partition": None}


async def test_firings_by_trigger_that_are_not_delivered_yet_are_shown(cluster: Any, workers: Any) -> None:
    cluster.put("a", due=NOW + 9, progress={"triggered": (NOW,)})
    cluster.put("b", due=NOW + 9)
    assert (await get(workers[0], "a"))["triggered"] == [NOW]
    assert "triggered" not in await get(workers[0], "b")


async def test_an_unknown_id_is_not_found(workers: Any) -> None:
    problem = await get(workers[0], "nothing", status=404)
    assert problem["title"] == "Not Found"
    assert "'nothing'" in problem["detail"]


async def test_another_tenants_schedule_is_not_found(cluster: Any, workers: Any) -> None:
    cluster.put("a", tenant="other")
    await get(workers[0], "a", status=404)


async def test_an_id_that_cannot_be_is_refused(workers: Any) -> None:
    assert (await get(workers[0], "a\0b", status=400))["parameter"] == "id"


async def test_of_several_keys_with_one_id_the_last_accepted_is_shown(cluster: Any, workers: Any) -> None:
    for partition, accepted_at in ((0, NOW), (1, NOW + 9), (2, NOW + 5)):
        cluster.put("a", partition=partition, accepted_at=accepted_at)
    assert (await get(workers[0], "a"))["source"]["partition"] == 1


@pytest.mark.parametrize(("method", "action"), [("DELETE", ""), ("POST", "/pause")])
async def test_a_change_waits_for_slower_workers_to_act_on_the_last_accepted(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch, method: str, action: str
) -> None:
    monkeypatch.setattr(cluster_answers, "GRACE_S", 0.0)
    monkeypatch.setattr(cluster_answers, "TOTAL_TIMEOUT_S", 60.0)
    cluster.put("a", partition=0, accepted_at=NOW)
    cluster.put("a", partition=1, accepted_at=NOW + 9)
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def slow_in_one(lanes: Any, tenant: str, id: str) -> Any:
        if (TOPIC, 1) in lanes.tables():
            asked.set()
            await goes_on.wait()
        return await own_matches(lanes, tenant, id)

    monkeypatch.setattr(handlers, "own_matches", slow_in_one)
    changed = asyncio.create_task(workers[0].ask(method, f"{ONE}a{action}", 200))
    await asyncio.wait_for(asked.wait(), 30)
    assert (await get(workers[0], "a"))["source"]["partition"] == 0, "a reader does not wait so long"
    assert not changed.done()
    goes_on.set()
    assert (await changed)["partition"] == 1


async def test_a_change_of_what_is_found_waits_for_no_worker_that_is_down(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=0)
    await workers[1].stop()
    assert (await workers[0].ask("DELETE", f"{ONE}a", 200))["outcome"] == "cancelled"


async def test_what_is_not_found_is_unknown_while_a_worker_is_down(cluster: Any, workers: Any) -> None:
    cluster.put("here", partition=0)
    await workers[1].stop()
    problem = await get(workers[0], "elsewhere", status=503)
    assert [each["partition"] for each in problem["missing"]] == [1, 3]
    assert (await get(workers[0], "here"))["id"] == "here"
