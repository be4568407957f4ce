"""A quota of pending schedules over twelve partitions of a real broker: used up to the last one, and not passed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.reading import read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.model import Requester
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_result

pytestmark = pytest.mark.integration

QUOTA, SENT = 100, 130


@pytest.mark.parametrize(
    "gap_s",
    [pytest.param(0.0, id="all at once"), pytest.param(0.02, id="one after another", marks=pytest.mark.every_case)],
)
@pytest.mark.soak
async def test_a_quota_of_a_hundred_over_twelve_partitions_takes_a_hundred(
    kafka: Kafka, tmp_path: Path, gap_s: float
) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="12")
    try:
        await asyncio.gather(application.start_worker(), application.start_worker())
        await application.shared()
        await limit(application)
        outcomes = await answers(application, gap_s)
        assert (outcomes.count("scheduled"), outcomes.count("rejected")) == (QUOTA, SENT - QUOTA)
        if gap_s:
            assert outcomes.index("rejected") >= 95
    finally:
        application.close()


async def limit(application: Application) -> None:
    """Set the quota, and wait until all workers know it."""
    settings = application.settings
    async with opened_tenants(application.bootstrap_servers, settings.topics, SystemClock(), 30) as store:
        await store.set_rules(
            "shop", lambda rules: msgspec.structs.replace(rules, max_pending=QUOTA), by=Requester("test", "")
        )

    async def is_known() -> bool:
        books = [await worker.get("/api/v1/tenants") for worker in application.workers]
        return all(book["tenants"] for book in books)

    await eventually(is_known, every=0.05, what="the quota on all workers")


async def answers(application: Application, gap_s: float) -> list[str]:
    """Send commands with ids of any kind; return what became of them, in the order of their answers."""
    replies = f"{application.settings.app_id}-answers"
    await application.create_topic(replies, 1)
    random, target = Random(7), application.target.encode()
    headers = [
        *(("schedule-after", b"1h"), ("schedule-tenant", b"shop"), ("schedule-target-topic", target)),
        ("schedule-reply-topic", replies.encode()),
    ]
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    try:
        for _ in range(SENT):
            id = b"%032x" % random.getrandbits(128)
            await producer.send(application.settings.topics.commands, b"", key=id, headers=headers)
            await asyncio.sleep(gap_s)
    finally:
        await producer.stop()
    found = await read_until(application.bootstrap_servers, [replies], lambda records: len(records) == SENT)
    return [decode_result(record.value).outcome.value for record in found]
