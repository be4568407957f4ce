"""Lists of the whole cluster while partitions or workers are missing: their names in place of a list with gaps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.tables.views import Query
from light_scheduler.web.cluster import answers as cluster_answers
from light_scheduler.web.cluster import known_partitions, own_answers
from light_scheduler.web.cluster.own_answers import own_page

from .test_listing import LIST, TOPIC, all_pages


async def test_a_partition_that_leaves_while_it_is_read_is_not_spoken_for(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_answers, "SLICE_BUDGET", 1)
    cluster.put("a", partition=0)
    cluster.put("b", partition=2)
    lanes = workers[0].lanes

    async def close_lane() -> None:
        lanes.states[TOPIC, 2] = "closing"

    page, _ = await asyncio.gather(own_page(lanes, Query(tenant="default")), close_lane())
    assert page.lanes == [(TOPIC, 0)]


@pytest.mark.parametrize("path", [LIST, f"{LIST}/none"])
async def test_a_partition_that_may_lack_an_answered_command_is_missing(workers: Any, path: str) -> None:
    workers[1].lanes.late = {(TOPIC, 1)}
    problem = await workers[0].json(path, status=503)
    assert [(each["partition"], each["reason"]) for each in problem["missing"]] == [
        (1, "is not running, or waits for a commit")
    ]


async def test_a_worker_that_is_down_is_named_with_its_partitions(cluster: Any, workers: Any) -> None:
    cluster.put("a")
    await workers[1].stop()
    async with workers[0].client.get(LIST) as response:
        assert response.status == 503
        assert response.content_type == "application/problem+json"
        assert response.headers["Retry-After"] == "1"
        problem = await response.json(content_type=None)
    assert [(each["partition"], each["worker"]) for each in problem["missing"]] == [
        (1, workers[1].url),
        (3, workers[1].url),
    ]
    assert f"{TOPIC}[1], {TOPIC}[3]" in problem["detail"]


async def test_a_worker_that_does_not_answer_in_time_counts_as_down(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = await cluster.start([0, 1, 2, 3])  # one that answers would have no time for it either
    release = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    silent = await asyncio.start_server(never, "127.0.0.1", 0)
    cluster.distribution[f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"] = {TOPIC: [4]}
    monkeypatch.setattr(cluster_answers, "TOTAL_TIMEOUT_S", 0.05)
    problem = await worker.json(LIST, status=503)
    assert [(each["partition"], each["reason"]) for each in problem["missing"]] == [(4, "did not answer in time")]
    release.set()
    silent.close()
    await silent.wait_closed()


async def test_a_partition_that_is_still_being_restored_is_missing(workers: Any) -> None:
    workers[1].lanes.states[TOPIC, 3] = "restoring"
    problem = await workers[0].json(LIST, status=503)
    assert [(each["partition"], each["reason"]) for each in problem["missing"]] == [
        (3, "is not running, or waits for a commit")
    ]


async def test_a_partition_that_nobody_has_is_missing(cluster: Any) -> None:
    (worker,) = await cluster.start([0, 2])
    problem = await worker.json(LIST, status=503)
    assert problem["missing"] == [{"topic": TOPIC, "partition": 1, "worker": None, "reason": "no worker has it"}]


async def test_a_list_of_one_partition_needs_no_other(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=2)
    workers[1].lanes.states[TOPIC, 3] = "restoring"
    own, other = f"{TOPIC}[2]", f"{TOPIC}[3]"
    for worker in workers:
        assert [each["id"] for each in (await worker.json(LIST, partition=own))["schedules"]] == ["a"]
        assert (await worker.json(LIST, 503, partition=other))["missing"][0]["partition"] == 3


@pytest.mark.parametrize("path", [LIST, "/api/v1/upcoming"])
@pytest.mark.parametrize(
    ("partition", "why"),
    [
        (f"{TOPIC}[4]", f"{TOPIC} has no partition 4: it has 4, numbered from 0"),
        ("out[0]", f"out is not a commands topic of this application: use {TOPIC}"),
    ],
)
async def test_a_partition_that_does_not_exist_is_refused_by_its_name(
    workers: Any, path: str, partition: str, why: str
) -> None:
    for worker in workers:
        problem = await worker.json(path, 400, partition=partition)
        assert (problem["parameter"], problem["detail"]) == ("partition", f"partition: {why}")


@pytest.mark.parametrize("path", [LIST, "/api/v1/upcoming"])
async def test_a_partition_that_was_added_is_missing_until_a_worker_has_it(
    cluster: Any, workers: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.topics.partitions = {TOPIC: 6}
    for partition in (4, 5):
        problem = await workers[0].json(path, 503, partition=f"{TOPIC}[{partition}]")
        place = {"topic": TOPIC, "partition": partition}
        assert problem["missing"] == [{**place, "worker": None, "reason": "no worker has it"}]
    problem = await workers[0].json(path, 400, partition=f"{TOPIC}[6]")
    assert problem["detail"] == f"partition: {TOPIC} has no partition 6: it has 6, numbered from 0"
    await workers[0].json(path, partition=f"{TOPIC}[3]")
    assert cluster.topics.counted == 1, "Kafka is asked once for a while, and only about partitions that no worker has"
    monkeypatch.setattr(known_partitions, "FRESH_S", 0)
    cluster.topics.failure = BrokerError("no answer")
    await workers[0].json(path, 503, partition=f"{TOPIC}[6]")
    assert cluster.topics.counted == 2


async def test_a_kafka_that_does_not_answer_is_asked_once_and_awaited_for_a_time(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = cluster.topics.answer = asyncio.Event()
    monkeypatch.setattr(known_partitions, "FRESH_S", 0)
    monkeypatch.setattr(known_partitions, "WAIT_S", 0.01)
    for _ in range(3):
        await workers[0].json(LIST, 503, partition=f"{TOPIC}[4]")
    assert cluster.topics.counted == 1
    answer.set()
    monkeypatch.setattr(known_partitions, "WAIT_S", 60)
    await workers[0].json(LIST, 400, partition=f"{TOPIC}[4]")


async def test_settings_that_kafka_refuses_leave_a_partition_unknown(cluster: Any, workers: Any) -> None:
    cluster.topics.failure = ConfigurationError("ssl_ca", "is no certificate")
    await workers[0].json(LIST, 503, partition=f"{TOPIC}[4]")


@pytest.mark.parametrize("path", [LIST, "/api/v1/upcoming"])
async def test_a_partition_that_nobody_has_is_missing_and_not_unknown(cluster: Any, workers: Any, path: str) -> None:
    cluster.distribution[workers[1].url] = {TOPIC: [3]}
    for worker in workers:
        problem = await worker.json(path, 503, partition=f"{TOPIC}[1]")
        assert problem["missing"] == [{"topic": TOPIC, "partition": 1, "worker": None, "reason": "no worker has it"}]


async def test_before_the_first_assignment_there_is_no_list(cluster: Any, workers: Any) -> None:
    cluster.distribution.clear()
    assert (await workers[0].json(LIST, status=503))["missing"][0]["reason"] == "no worker has it"
    assert (await workers[0].json(LIST, 503, partition=f"{TOPIC}[9]"))["missing"][0]["partition"] == 9


async def test_a_partition_that_two_workers_have_while_it_moves_is_listed_once(cluster: Any) -> None:
    old, new = await cluster.start([0], [0])
    cluster.put("a")
    cluster.put("b")
    cluster.distribution[old.url] = {TOPIC: []}
    for worker in (old, new):
        assert await all_pages(worker) == [["a", "b"]]
