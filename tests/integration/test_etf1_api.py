"""etf1's read API from two real workers: what its producers have scheduled, as its admin asks for it."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.application import Application
from support.foreign import etf1_headers
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

DAY_S = 86_400


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> Any:
    topic = f"etf1-{tmp_path.name[-8:]}-{SystemClock().now()}"
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, commands_topics=f"{topic}:etf1,{topic}-native"
    )
    yield application
    application.close()


async def found(url: str, path: str, expected: int, **parameters: str) -> list[dict[str, Any]]:
    """Return the schedules that a search finds, once there are as many as expected."""
    async with aiohttp.ClientSession() as session:

        async def answer() -> Any:
            async with session.get(url + path, params=parameters) as response:
                body = await response.json()
                return body if response.status == 200 and body["found"] == expected else None

        body = await eventually(answer, every=0.05, what=f"{expected} schedules")
    return [each["schedule"] for each in body["schedules"]]


async def test_what_etf1_s_producers_have_scheduled_is_searched_over_all_workers(
    application: Application, kafka: Kafka
) -> None:
    workers = [await application.start_worker(), await application.start_worker()]
    (topic, _) = (source.name for source in application.settings.inputs)
    base = f"/api/scheduler/{application.settings.app_id}"
    due = SystemClock().now() // 1_000 + 2 * DAY_S
    producer = await started_producer({"bootstrap_servers": kafka.bootstrap_servers})
    try:
        sent = {}
        for number in range(20):
            headers = etf1_headers((due + number) * 1_000, application.target)
            key = f"id-{number:02}"
            record = await producer.send_and_wait(topic, b"v%d" % number, key.encode(), headers=headers)
            sent[key] = {
                "epoch": due + number,
                "id": key,
                "target-key": "target-key",
                "target-topic": application.target,
                "timestamp": record.timestamp // 1_000,
                "topic": topic,
                "value": b64encode(b"v%d" % number).decode(),
            }
        await producer.send_and_wait(topic, None, b"id-07")  # deleted
        await producer.send_and_wait(topic, b"no schedule", b"bad")
    finally:
        await stop_producer(producer)
    del sent["id-07"]

    for worker in workers:

        async def are_listed(url: str = worker.url) -> bool:
            """Say whether all commands are carried out: there are as many schedules already before the last two."""
            return await found(url, f"{base}/schedules", 19, **{"sort-by": "epoch asc"}) == [*sent.values()]

        await eventually(are_listed, what="all schedules but the deleted one")
        some = await found(worker.url, f"{base}/schedules", 3, **{"epoch-from": f"{due + 17}", "sort-by": "id desc"})
        assert some == [sent["id-19"], sent["id-18"], sent["id-17"]]
        assert await found(worker.url, f"{base}/schedules", 10, **{"schedule-id": "id-1", "max": "1"})
        assert await found(worker.url, f"/api/live{base.removeprefix('/api')}/schedules", 0) == []
        (one,) = await worker.get(f"{base}/schedule/id-03")
        assert one == {"scheduler": application.settings.app_id, "schedule": sent["id-03"]}
        assert await worker.get("/schedules") == [], "due another day"
        assert (await worker.get("/info"))["kafka"]["topics"] == [topic]
        (totals,) = await worker.get("/api/stats")
        assert (totals["total"], totals["total_live"]) == (19, 0)


@pytest.mark.soak
async def test_what_was_delivered_is_in_the_history_view_and_counted_by_etf1_s_metric(
    application: Application, kafka: Kafka
) -> None:
    worker = await application.start_worker()
    (topic, _) = (source.name for source in application.settings.inputs)
    name = application.settings.app_id
    due = SystemClock().now() // 1_000 + 10
    producer = await started_producer({"bootstrap_servers": kafka.bootstrap_servers})
    try:
        for number in range(3):
            headers = etf1_headers(due * 1_000, application.target)
            await producer.send_and_wait(topic, b"v", b"id-%d" % number, headers=headers)
        await producer.send_and_wait(topic, None, b"id-2")  # deleted
        await producer.send_and_wait(topic, b"no schedule", b"bad")
    finally:
        await stop_producer(producer)

    delivered = await found(worker.url, f"/api/history/scheduler/{name}/schedules", 2, **{"sort-by": "id asc"})
    assert [(each["id"], each["epoch"], each["target-topic"]) for each in delivered] == [
        ("id-0", due, application.target),
        ("id-1", due, application.target),
    ]
    (one,) = await worker.get(f"/api/history/scheduler/{name}/schedule/id-1")
    assert one == {"scheduler": name, "schedule": delivered[1]}
    async with aiohttp.ClientSession() as session:
        async with session.get(worker.url + "/liveness") as response:
            assert response.status == 200

        async def all_counted() -> dict[str, float] | None:
            """A firing is counted a moment after it can be seen."""
            async with session.get(worker.url + "/metrics") as response:
                counts = events(await response.text())
            return counts if counts["triggered_schedule"] + counts["missed_schedule"] >= 2 else None

        counted = await eventually(all_counted, every=0.05, what="two firings that are counted")
    assert counted["triggered_schedule"] + counted["missed_schedule"] == 2
    told = ("planned_schedule", "deleted_schedule", "invalid_schedule", "other")
    assert {type: counted[type] for type in told} == dict(zip(told, (3, 1, 1, 0), strict=True))


def events(metrics: str) -> dict[str, float]:
    """Return the counts of etf1's metric by type."""
    return {
        sample.labels["type"].removeprefix("kafka_scheduler_"): sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "kafka_scheduler_event_total"
    }
