"""etf1's probe and metric: what its deployments and dashboards ask of a worker."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.web_cluster.cluster import with_topics
from support.web_cluster.schedules import TOPIC

from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.model import Outcome
from light_scheduler.model.lateness import Lateness

TYPES = ("planned_schedule", "deleted_schedule", "invalid_schedule", "triggered_schedule", "missed_schedule", "other")


@pytest.fixture
async def worker(cluster: Any) -> Any:
    cluster.settings = with_topics(f"{TOPIC}:etf1,other")
    (worker,) = await cluster.start([0])
    return worker


def late(*ms: int) -> Lateness:
    lateness = Lateness()
    for each in ms:
        lateness.observe(each)
    return lateness


def outcomes(**counts: int) -> Counter[Outcome]:
    return Counter({Outcome(name): count for name, count in counts.items()})


async def counted(worker: Any) -> dict[str, float]:
    async with worker.client.get("/metrics") as response:
        families = {family.name: family for family in text_string_to_metric_families(await response.text())}
    family = families["kafka_scheduler_event"]
    assert (family.type, family.documentation) == ("counter", "The number of event triggered by type")
    assert {sample.name for sample in family.samples} == {"kafka_scheduler_event_total"}
    assert all(sample.labels.keys() == {"type"} for sample in family.samples)
    return {sample.labels["type"].removeprefix("kafka_scheduler_"): sample.value for sample in family.samples}


async def test_a_process_that_answers_is_alive(worker: Any) -> None:
    async with worker.client.get("/liveness") as response:
        assert (response.status, await response.text()) == (200, "")


async def test_every_type_is_counted_from_the_start(worker: Any) -> None:
    assert await counted(worker) == dict.fromkeys(TYPES, 0)


async def test_events_are_counted_by_type(worker: Any) -> None:
    worker.lanes.totals[TOPIC] = TopicTotals(
        outcomes=outcomes(scheduled=3, updated=2, rescheduled=1, cancelled=4, rejected=5, not_found=9),
        lateness=late(0, 999, 1_000, 1_001, 60_000),
        restarts=7,
    )
    expected = {
        "planned_schedule": 6,
        "deleted_schedule": 4,
        "invalid_schedule": 5,
        "triggered_schedule": 3,
        "missed_schedule": 2,
        "other": 7,
    }
    assert await counted(worker) == expected
    assert await counted(worker) == expected, "a scrape counts nothing twice"


async def test_a_count_changes_with_what_is_done_and_not_when_partitions_move(worker: Any) -> None:
    lanes, totals = worker.lanes.all, worker.lanes.totals[TOPIC]
    totals.outcomes = outcomes(scheduled=3)
    worker.lanes.figures = {"outcomes": {"scheduled": 3}}
    assert (await counted(worker))["planned_schedule"] == 3
    worker.lanes.all = {}
    assert (await counted(worker))["planned_schedule"] == 3
    worker.lanes.all = lanes  # the same lane, which was missing for one scrape
    assert (await counted(worker))["planned_schedule"] == 3
    totals.outcomes += outcomes(scheduled=1)  # it left and came back between two scrapes
    worker.lanes.figures = {"outcomes": {"scheduled": 1}}
    assert (await counted(worker))["planned_schedule"] == 4
    totals.outcomes += outcomes(cancelled=1)
    worker.lanes.figures = {"outcomes": {"cancelled": 1}}
    assert await counted(worker) == {**dict.fromkeys(TYPES, 0), "planned_schedule": 4, "deleted_schedule": 1}


async def test_only_topics_of_the_dialect_are_counted(worker: Any) -> None:
    worker.lanes.totals = {TOPIC: TopicTotals(restarts=2), "other": TopicTotals(restarts=1)}
    assert (await counted(worker))["other"] == 2


async def test_without_a_topic_of_the_dialect_there_is_neither(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    await worker.json("/liveness", 404)
    async with worker.client.get("/metrics") as response:
        assert "kafka_scheduler_event" not in await response.text()
