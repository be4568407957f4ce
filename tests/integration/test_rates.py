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

from light_scheduler.cli.growing import grow, moved
from light_scheduler.clock import SystemClock
from light_scheduler.engine.command_rates import COMMANDS_SAVED_S
from light_scheduler.engine.token_bucket import BORROWED_MS
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import OverRate, TenantRules
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_result, partition_for

pytestmark = pytest.mark.integration

PARTITIONS, GROWN, RATE = 4, 8, 80
SENT_PER_S = RATE * 3 // 2
SETTLED_MS, WINDOW_MS = 3_000, 10_000
GROWING_WINDOW_MS, STANDSTILL_MS = 60_000, 3_000
"""While the group assigns the partitions anew, nothing is carried out."""
BURST_MS = COMMANDS_SAVED_S * 1_000 + BORROWED_MS
MOVED_WITHIN_S = 120.0
RULES = {
    "rejected": TenantRules(commands_per_second=RATE, over_rate=OverRate.REJECT),
    "delayed": TenantRules(commands_per_second=RATE, over_rate=OverRate.DELAY),
    "fired": TenantRules(firings_per_second=RATE),
}


@pytest.mark.soak
@pytest.mark.every_case
async def test_keys_of_one_partition_have_the_whole_rate_of_their_tenant(kafka: Kafka, tmp_path: Path) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS))
    try:
        await asyncio.gather(application.start_worker(), application.start_worker())
        await application.shared()
        await rule(application)
        for tenant in RULES:
            await application.create_topic(topic_of(application, tenant), 1)
        await send(application, next(keys()), WINDOW_MS)
        await judge(application, WINDOW_MS)
    finally:
        application.close()


@pytest.mark.soak
@pytest.mark.every_case
async def test_rates_are_used_up_and_not_passed_while_the_topic_gets_more_partitions(
    kafka: Kafka, tmp_path: Path
) -> None:
    """All commands have one key, which moves from a partition to another one, as two thirds of the schedules do."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS))
    moves = next(key for key in keys() if partition_for(key, GROWN) != 0)
    settings, topic = application.settings, application.settings.topics.commands
    try:
        await asyncio.gather(application.start_worker(), application.start_worker())
        await application.shared()
        await rule(application)
        for tenant in RULES:
            await application.create_topic(topic_of(application, tenant), 1)
        sending = asyncio.create_task(send(application, moves, GROWING_WINDOW_MS))
        await results_of(application, "delayed", 0)
        await asyncio.to_thread(grow, settings, topic, GROWN)
        assert await asyncio.to_thread(moved, settings, topic, GROWN, MOVED_WITHIN_S, lambda _: None)
        await sending
        await judge(application, GROWING_WINDOW_MS, STANDSTILL_MS)
    finally:
        application.close()


async def judge(application: Application, window_ms: int, standstill_ms: int = 0) -> None:
    """Check that rates were used up to a twentieth in a window, and passed in none by more than may be saved up."""
    for tenant in RULES:
        carried_out = await results_of(application, tenant, window_ms)
        begin = carried_out[0]
        settled = [at for at in carried_out if SETTLED_MS <= at - begin < SETTLED_MS + window_ms]
        assert len(settled) >= 0.95 * RATE * (window_ms - standstill_ms) / 1_000, tenant
        for first, at in enumerate(carried_out):
            in_window = sum(at <= each < at + WINDOW_MS for each in carried_out[first:])
            assert in_window <= RATE * (WINDOW_MS + BURST_MS) / 1_000, tenant


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


def topic_of(application: Application, tenant: str) -> str:
    """Return where the messages of a tenant, or the answers to its commands, go: no other test's do."""
    return f"{application.settings.app_id}-{tenant}"


def constant(rules: TenantRules, _before: TenantRules) -> TenantRules:
    return rules


async def send(application: Application, key: bytes, window_ms: int) -> None:
    """Send half as many commands again as the rates allow, and firings for one instant, all of one partition."""
    lasts_s = (SETTLED_MS + window_ms) // 1_000 + 2
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    topic = application.settings.topics.commands
    cancel, target = [("schedule-command", b"cancel")], topic_of(application, "fired").encode()
    try:
        for id in islice(keys(), RATE * lasts_s):
            headers = [("schedule-after", b"2s"), ("schedule-tenant", b"fired"), ("schedule-target-topic", target)]
            await producer.send(topic, b"", key=id, headers=headers)
        begun, sent = monotonic(), 0
        while sent < SENT_PER_S * lasts_s:
            await asyncio.sleep(0.1)
            before, sent = sent, int(SENT_PER_S * min(monotonic() - begun, lasts_s))  # however late that was
            for tenant in ("rejected", "delayed"):
                reply_topic = topic_of(application, tenant).encode()
                answered = [("schedule-tenant", tenant.encode()), ("schedule-reply-topic", reply_topic)]
                for _ in range(before, sent):
                    await producer.send(topic, None, key=key, headers=cancel + answered)
    finally:
        await producer.stop()


async def results_of(application: Application, tenant: str, window_ms: int) -> list[int]:
    """Return when (ms) commands were carried out, or messages delivered, as far as the test needs it."""

    def is_enough(records: list[Record]) -> bool:
        return bool(records) and records[-1].timestamp >= records[0].timestamp + SETTLED_MS + window_ms

    found = await read_until(application.bootstrap_servers, [topic_of(application, tenant)], is_enough)
    if tenant == "fired":
        return [record.timestamp for record in found]
    return [record.timestamp for record in found if decode_result(record.value).outcome.value == "not_found"]


def keys() -> Iterator[bytes]:
    """Yield keys that belong to the first partition."""
    return (key for key in map(b"%d".__mod__, count()) if partition_for(key, PARTITIONS) == 0)
