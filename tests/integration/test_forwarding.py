"""Commands that a producer with another partitioner sends, on a real broker."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.reading import header, read_all, read_until

from light_scheduler.client import SchedulerClient
from light_scheduler.model import Outcome
from light_scheduler.wire import decode_result, partition_for

pytestmark = pytest.mark.integration

KEYS = [f"order-{number}" for number in range(40)]


async def schedule_all(client: SchedulerClient, application: Application) -> None:
    await asyncio.gather(*(client.schedule(key, topic=application.target, after="1h") for key in KEYS))


async def test_cancels_that_arrive_in_a_wrong_partition_find_their_schedules(served: Application) -> None:
    names, partitions = served.settings.topics, served.settings.partitions
    headers = [("schedule-command", b"cancel"), ("schedule-reply-topic", names.results.encode())]
    async with served.client() as client, AIOKafkaProducer(bootstrap_servers=served.bootstrap_servers) as producer:
        await schedule_all(client, served)
        for number, key in enumerate(KEYS):
            elsewhere = (partition_for(key.encode(), partitions) + 1 + number % (partitions - 1)) % partitions
            ours = [*headers, ("schedule-correlation-id", key.encode())]
            await producer.send(names.commands, b"ignored", key.encode(), elsewhere, headers=ours)
        await producer.flush()

    records = await read_until(
        served.bootstrap_servers,
        [names.results],
        lambda records: len({header(record, "schedule-correlation-id") for record in records} & {*KEYS}) == len(KEYS),
    )

    answers = [decode_result(record.value) for record in records if header(record, "schedule-correlation-id") in KEYS]
    assert {(answer.id, answer.outcome) for answer in answers} == {(key, Outcome.CANCELLED) for key in KEYS}
    (worker,) = served.workers
    lanes = (await worker.get("/info"))["lanes"]
    assert sum(lane["pending"] for lane in lanes) == 0
    assert sum(lane["forwarded"] for lane in lanes) == len(KEYS)
    commands = await read_all(served.bootstrap_servers, names.commands)
    assert len(commands) == 3 * len(KEYS), "one schedule, one cancel and one copy of it"
