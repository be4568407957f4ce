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


async def send_elsewhere(application: Application, headers: list[tuple[str, bytes]]) -> None:
    """Send a command for each key, each to a partition that is not the key's own."""
    partitions = application.settings.partitions
    async with AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers) as producer:
        for number, key in enumerate(KEYS):
            ours = [*headers, ("schedule-correlation-id", key.encode())]
            place = (partition_for(key.encode(), partitions) + 1 + number % (partitions - 1)) % partitions
            await producer.send(application.settings.topics.commands, b"x", key.encode(), place, headers=ours)


async def answered(application: Application) -> dict[str, Outcome]:
    """Return the outcomes of commands whose correlation id is their key, once they are all there."""
    records = await read_until(
        application.bootstrap_servers,
        [application.settings.topics.results],
        lambda records: len({header(record, "schedule-correlation-id") for record in records} & {*KEYS}) == len(KEYS),
    )
    answers = [decode_result(record.value) for record in records if header(record, "schedule-correlation-id") in KEYS]
    assert len(answers) == len(KEYS)
    return {answer.id or "": answer.outcome for answer in answers}


async def test_schedules_that_arrive_in_a_wrong_partition_are_kept_found_and_delivered_in_that_of_their_key(
    served: Application,
) -> None:
    names, partitions = served.settings.topics, served.settings.partitions
    headers = [
        ("schedule-after", b"1h"),
        ("schedule-target-topic", served.target.encode()),
        ("schedule-reply-topic", names.results.encode()),
    ]
    async with served.client() as client:
        await send_elsewhere(served, headers)
        assert await answered(served) == dict.fromkeys(KEYS, Outcome.SCHEDULED)

        gone, kept = KEYS[::2], KEYS[1::2]
        cancelled = await asyncio.gather(*(client.cancel(key) for key in gone))
        assert {result.outcome for result in cancelled} == {Outcome.CANCELLED}
        triggered = await asyncio.gather(*(client.trigger(key) for key in kept))
        assert {result.outcome for result in triggered} == {Outcome.TRIGGERED}

    fired = await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) >= len(kept))
    assert sorted(record.key.decode() for record in fired) == sorted(kept)
    sources = {record.key.decode(): int(header(record, "schedule-source-partition") or "") for record in fired}
    assert sources == {key: partition_for(key.encode(), partitions) for key in kept}


async def test_cancels_that_arrive_in_a_wrong_partition_find_their_schedules(served: Application) -> None:
    names = served.settings.topics
    headers = [("schedule-command", b"cancel"), ("schedule-reply-topic", names.results.encode())]
    async with served.client() as client:
        await schedule_all(client, served)
        await send_elsewhere(served, headers)

    assert await answered(served) == dict.fromkeys(KEYS, Outcome.CANCELLED)
    (worker,) = served.workers
    await worker.shows(
        lambda info: [sum(lane[name] for lane in info["lanes"]) for name in ("pending", "forwarded")] == [0, len(KEYS)]
    )
    commands = await read_all(served.bootstrap_servers, names.commands)
    assert len(commands) == 3 * len(KEYS), "one schedule, one cancel and one copy of it"
