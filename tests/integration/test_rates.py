"""Rates of tenants whose keys all belong to one of four partitions of a real broker: used up, and not passed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from time import monotonic

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.reading import Record, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.engine.tenants import COMMANDS_SAVED_S
from light_scheduler.engine.token_bucket import BORROWED_MS
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import OverRate, TenantRules
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_result, partition_for

pytestmark = pytest.mark.integration

PARTITIONS, RATE = 4, 60
SENT_PER_S = RATE * 3 // 2
SETTLED_MS, WINDOW_MS = 3_000, 10_000
LASTS_S = (SETTLED_MS + WINDOW_MS) // 1_000 + 2
BURST_MS = COMMANDS_SAVED_S * 1_000 + BORROWED_MS
RULES = {
    "rejected": TenantRules(commands_per_second=RATE, over_rate=OverRate.REJECT),
    "delayed": TenantRules(commands_per_second=RATE, over_rate=OverRate.DELAY),
    "fired": TenantRules(firings_per_second=RATE),
}


@pytest.mark.soak
async def test_keys_of_one_partition_have_the_whole_rate_of_their_tenant(kafka: Kafka, tmp_path: Path) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS))
    try:
        await asyncio.gather(application.start_worker(), application.start_worker())
        await application.shared()
        await rule(application)
        for tenant in RULES:
            await application.create_topic(tenant, 1)
        await send(application)
        for tenant in RULES:
            carried_out = await results_of(application, tenant)
            begin = carried_out[0]
            settled = [at for at in carried_out if SETTLED_MS <= at - begin < SETTLED_MS + WINDOW_MS]
            assert len(settled) >= 0.95 * RATE * WINDOW_MS / 1_000, tenant
            for first, at in enumerate(carried_out):
                in_window = sum(at <= each < at + WINDOW_MS for each in carried_out[first:])
                assert in_window <= RATE * (WINDOW_MS + BURST_MS) / 1_000, tenant
    finally:
        application.close()


async def rule(application: Application) -> None:
    """Set the rules, and wait until all workers know them."""
    settings = application.settings
    async with opened_tenants(application.bootstrap_servers, settings.topics, SystemClock(), 30) as store:
        for tenant, rules in RULES.items():
            await store.set_rules(tenant, partial(constant, rules), by=Requester("test", ""))

    async def are_known() -> bool:
        books = [await worker.get("/api/v1/tenants") for worker in application.workers]
        return all(len(book["tenants"]) == len(RULES) for book in books)

    await eventually(are_known, every=0.05, what="the rules on all workers")


def constant(rules: TenantRules, _before: TenantRules) -> TenantRules:
    return rules


async def send(application: Application) -> None:
    """Send half as many commands again as the rates allow, and firings for one instant, all of one partition."""
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    topic, key = application.settings.topics.commands, next(keys())
    cancel = [("schedule-command", b"cancel")]
    try:
        for id in islice(keys(), RATE * LASTS_S):
            headers = [("schedule-after", b"2s"), ("schedule-tenant", b"fired"), ("schedule-target-topic", b"fired")]
            await producer.send(topic, b"", key=id, headers=headers)
        begun, sent = monotonic(), 0
        while sent < SENT_PER_S * LASTS_S:
            await asyncio.sleep(0.1)
            before, sent = sent, int(SENT_PER_S * min(monotonic() - begun, LASTS_S))  # however late that was
            for tenant in ("rejected", "delayed"):
                answered = [("schedule-tenant", tenant.encode()), ("schedule-reply-topic", tenant.encode())]
                for _ in range(before, sent):
                    await producer.send(topic, None, key=key, headers=cancel + answered)
    finally:
        await producer.stop()


async def results_of(application: Application, tenant: str) -> list[int]:
    """Return when (ms) commands were carried out, or messages delivered, as far as the test needs it."""

    def is_enough(records: list[Record]) -> bool:
        return bool(records) and records[-1].timestamp >= records[0].timestamp + SETTLED_MS + WINDOW_MS

    found = await read_until(application.bootstrap_servers, [tenant], is_enough)
    if tenant == "fired":
        return [record.timestamp for record in found]
    return [record.timestamp for record in found if decode_result(record.value).outcome.value == "not_found"]


def keys() -> Iterator[bytes]:
    """Yield keys that belong to the first partition."""
    return (key for key in map(b"%d".__mod__, count()) if partition_for(key, PARTITIONS) == 0)
