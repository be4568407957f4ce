"""A rate of a tenant over two commands topics of a real broker: one topic can use it up, across workers."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.reading import read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

PARTITIONS, RATE, FIRINGS = 4, 40, 160
ALONE_MS = 1_000 * FIRINGS * 2 * PARTITIONS // RATE
"""How long it takes with the part of one partition of one topic."""


@pytest.mark.soak
async def test_firings_of_one_key_of_one_topic_have_the_whole_rate(kafka: Kafka, tmp_path: Path) -> None:
    topics = [f"{name}-{uuid4().hex[:8]}" for name in ("orders", "jobs")]
    inputs = ",".join(f"{topic}:native" for topic in topics)
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS), commands_topics=inputs
    )
    try:
        workers = [application.new_worker(), application.new_worker()]
        for worker in workers:
            worker.start()
        await asyncio.gather(*(worker.ready() for worker in workers))

        async def are_shared() -> bool:
            infos = [await worker.get("/info") for worker in workers]
            running = [[lane for lane in info["lanes"] if lane["state"] == "running"] for info in infos]
            return all(running) and sum(map(len, running)) == 2 * PARTITIONS

        await eventually(are_shared, every=0.1, what="all lanes on both workers")
        rules = TenantRules(firings_per_second=RATE)
        async with opened_tenants(
            application.bootstrap_servers, application.settings.topics, SystemClock(), 30
        ) as store:
            await store.set_rules("default", partial(constant, rules), by=Requester("test", ""))
        for worker in workers:
            await eventually(partial(knows_rule, worker), every=0.05, what="the rule")
        due = SystemClock().now() + 3_000
        async with AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers) as producer:
            for number in range(FIRINGS):
                headers = [
                    ("schedule-at", b"%d" % due),
                    ("schedule-id", b"%d" % number),
                    ("schedule-target-topic", application.target.encode()),
                ]
                await producer.send(topics[0], b"", key=b"all of one key", headers=headers)
        found = await read_until(
            application.bootstrap_servers, [application.target], lambda records: len(records) >= FIRINGS
        )
        at = sorted(record.timestamp for record in found)
        assert 1_000 * FIRINGS / RATE - 2_000 <= at[-1] - at[0] <= ALONE_MS // 2
    finally:
        application.close()


async def knows_rule(worker: object) -> bool:
    book = await worker.get("/api/v1/tenants")  # type: ignore[attr-defined]
    return bool(book["tenants"])


def constant(rules: TenantRules, _before: TenantRules) -> TenantRules:
    return rules
