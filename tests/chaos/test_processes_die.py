"""Workers that are killed, frozen and restarted while they fire: nothing is lost, doubled or early."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections import Counter
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from support.application import Application, WorkerProcess
from support.reading import Record, header, read_all, read_until
from support.waiting import eventually

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.model import EventType, Outcome, Result

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

SCHEDULES = 10_000
SPREAD_MS = 12_000
A_DAY_MS = 86_400_000


def payload_of(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest() * (number % 5)


def requests(application: Application, start: int, count: int) -> list[ScheduleRequest]:
    """Schedules due evenly over the spread, with payloads and headers that tell them apart."""
    return [
        {
            "id": f"s-{number}",
            "payload": payload_of(number),
            "topic": application.target,
            "at": start + number * SPREAD_MS // count,
            "headers": [("number", b"%d" % number), ("binary", bytes([number % 256, 255]))],
        }
        for number in range(count)
    ]


async def wait_for_firings(application: Application, count: int) -> None:
    """Return when a number of firings is visible."""
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= count)


async def check(application: Application, count: int) -> None:
    """Hold what is visible, and what history says, against what was scheduled."""
    await wait_for_firings(application, count)
    records = await read_all(application.bootstrap_servers, application.target)
    times = Counter(header(record, "schedule-id") for record in records)
    assert len(records) == count
    assert times == Counter({f"s-{number}": 1 for number in range(count)})
    for record in records:
        check_record(record)
    history = await application.whole_history(
        lambda history: sum(event.event is EventType.FIRED for event in history) >= count
    )
    of_type = Counter(event.event for event in history)
    assert of_type == {EventType.SCHEDULED: count, EventType.FIRED: count}
    assert len({event.id for event in history if event.event is EventType.FIRED}) == count


def check_record(record: Record) -> None:
    number = int(header(record, "number") or "")
    due, fired_at = int(header(record, "schedule-due") or ""), int(header(record, "schedule-fired-at") or "")
    assert record.value == payload_of(number)
    assert dict(record.headers)["binary"] == bytes([number % 256, 255])
    assert due <= fired_at <= record.timestamp, "never early"


async def test_ten_thousand_firings_survive_a_sigkill_of_one_of_two_workers(application: Application) -> None:
    first, second = application.new_worker(), application.new_worker()
    for worker in (first, second):
        worker.start()
    await asyncio.gather(first.ready(), second.ready())
    start = SystemClock().now() + 4_000
    async with application.client() as client:
        await client.schedule_many(requests(application, start, SCHEDULES))
    await wait_for_firings(application, SCHEDULES // 4)

    first.kill()
    await wait_for_firings(application, SCHEDULES // 2)
    first.start()

    await check(application, SCHEDULES)
    await first.ready()
    async with application.client() as client:
        tomorrow: list[ScheduleRequest] = [
            {**each, "at": start + A_DAY_MS} for each in requests(application, start, 500)
        ]
        results = await client.schedule_many(tomorrow, wait=True, timeout=60)
    assert all(isinstance(result, Result) and result.outcome is Outcome.SCHEDULED for result in results)
    second.kill()
    await check_counts(first, 500)


async def check_counts(worker: WorkerProcess, count: int) -> None:
    """Hold what a worker counts against what it lists, as soon as it knows of all partitions."""

    async def overview() -> Any:
        document = await worker.get("/api/v1/overview")
        return None if document["missing"] else document

    document = await eventually(overview, within=60, what="counts of all partitions")
    listed = await worker.listed("limit=500")
    assert len(listed) == document["pending"] == count
    assert document["states"] == Counter(row["state"] for row in listed)
    ahead = await worker.get("/api/v1/tenants/default/upcoming?by=day")
    assert sum(each["count"] for each in ahead["counts"]) == count


@pytest.mark.soak
async def test_a_frozen_worker_that_wakes_after_another_took_over_shows_nothing(application: Application) -> None:
    count = 4_000
    frozen, other = application.new_worker(), application.new_worker()
    for worker in (frozen, other):
        worker.start()
    await asyncio.gather(frozen.ready(), other.ready())
    start = SystemClock().now() + 3_000
    async with application.client() as client:
        await client.schedule_many(requests(application, start, count))
    await wait_for_firings(application, count // 8)

    frozen.send_signal(signal.SIGSTOP)
    await wait_for_firings(application, count)  # the other has taken the partitions over
    frozen.send_signal(signal.SIGCONT)

    await frozen.ready()
    await check(application, count)


@pytest.mark.soak
@pytest.mark.every_case
async def test_workers_that_come_and_go_in_order_lose_and_double_nothing(application: Application) -> None:
    count = 4_000
    steady = await application.start_worker()
    start = SystemClock().now() + 3_000
    async with application.client() as client:
        await client.schedule_many(requests(application, start, count))
    guest = application.new_worker()
    for share in (8, 4, 2):
        await wait_for_firings(application, count // share)
        if guest.is_running:
            assert await guest.end() == 0
        else:
            guest.start()
            await guest.ready()
    await check(application, count)
    assert await steady.end() == 0


@pytest.mark.soak
@pytest.mark.every_case
async def test_an_outside_consumer_group_reads_each_firing_once_and_in_due_order_through_a_kill(
    application: Application,
) -> None:
    """The guarantee as a user's service has it: a committed group position; order within a partition."""
    count = 2_000
    single = f"{application.target}-single"
    await application.create_topic(single, partitions=1)
    worker = await application.start_worker()
    start = SystemClock().now() + 2_000
    async with application.client() as client:
        await client.schedule_many(
            {**request, "topic": single, "key": "one"} for request in requests(application, start, count)
        )
    consumer = AIOKafkaConsumer(
        single,
        bootstrap_servers=application.bootstrap_servers,
        group_id=f"{single}-readers",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    seen: list[int] = []
    try:
        async with asyncio.timeout(200):
            while len(seen) < count:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    seen += [int(header(record, "number") or "") for record in batch]
                if len(seen) > count // 4 and len(application.workers) == 1:
                    worker.kill()
                    await application.start_worker()
    finally:
        await consumer.stop()
    assert seen == list(range(count))
