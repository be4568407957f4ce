"""Where a worker reads commands when the log of commands changed behind its back; and how much waits to be read."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.fetch import FetchRequest
from support.application import Application, WorkerProcess
from support.reading import header, read_until

from light_scheduler import SchedulerClient
from light_scheduler.agents.transport import FETCH_MAX_WAIT_MS
from light_scheduler.doctor.worker_checks import check_lanes, check_targets, info_of_worker
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.settings import load_settings

pytestmark = pytest.mark.integration

TIMEOUT_S = 60.0
STOPPED = "60s"
"""A session of workers that are stopped for a while: they keep their partitions."""


@pytest.fixture
async def admin(application: Application) -> Any:
    admin = AIOKafkaAdminClient(bootstrap_servers=application.bootstrap_servers)
    await admin.start()
    yield admin
    await admin.close()


async def schedule(application: Application, *ids: str) -> None:
    """Send commands that fire at once, one after the other, to the first partition."""
    await produce(application, [(b"k", id.encode()) for id in ids])


async def produce(application: Application, records: list[tuple[bytes, bytes]]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    for key, id in records:
        headers = [("schedule-id", id), ("schedule-target-topic", application.target.encode())]
        await producer.send_and_wait(application.settings.topics.commands, id, key, partition=0, headers=headers)
    await producer.stop()


async def delivered(application: Application, count: int) -> list[str | None]:
    """Return the ids that were delivered, when there are so many; a moment later there must not be more."""
    records = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= count, TIMEOUT_S
    )
    return [header(record, "schedule-id") for record in records]


async def until(worker: WorkerProcess, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Wait until the lane of the first partition is as wanted; return its status."""

    def first_lane(info: Any) -> dict[str, Any] | None:
        return next((lane for lane in info["lanes"] if lane["partition"] == 0), None)

    info = await worker.shows(lambda info: (lane := first_lane(info)) and condition(lane), TIMEOUT_S)
    return first_lane(info) or {}


def runs(lane: dict[str, Any]) -> bool:
    return bool(lane["state"] == "running")


async def metrics_of(worker: WorkerProcess) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{worker.url}/metrics") as response:
        return await response.text()


@pytest.mark.soak
async def test_commands_that_were_deleted_unread_are_counted_and_the_rest_is_carried_out(
    application: Application, admin: AIOKafkaAdminClient
) -> None:
    worker = await application.start_worker()
    await schedule(application, "a", "b")
    position = (await until(worker, lambda lane: lane["firings"] == 2))["position"]
    await worker.end()
    await schedule(application, "lost-1", "lost-2", "c")
    place = TopicPartition(application.settings.topics.commands, 0)
    await admin.delete_records({place: RecordsToDelete(before_offset=position + 2)})

    worker.start()
    await worker.ready()
    lane = await until(worker, lambda lane: lane["firings"] == 1)

    assert await delivered(application, 3) == ["a", "b", "c"]
    assert (lane["jumps"], lane["expired_commands"]) == (1, 2)
    assert "were deleted before they were read" in lane["jump"]
    metrics = await metrics_of(worker)
    assert re.search(r'light_scheduler_commands_expired_total\{[^}]*partition="0"[^}]*\} 2.0', metrics)
    settings = load_settings({"web_port": worker.url.rpartition(":")[2]}, environment={})
    info = await asyncio.to_thread(info_of_worker, settings)
    (check,) = check_lanes(info)
    assert [check.status for check in check_targets(info)] == ["ok"]
    assert (check.name, check.status) == ("commands", "warn")

    await worker.end()
    worker.start()
    await worker.ready()
    assert (await until(worker, runs))["jumps"] == 0, "it is counted once"


@pytest.mark.soak
async def test_a_topic_that_was_created_again_is_read_from_its_beginning(
    application: Application,
) -> None:
    worker = await application.start_worker()
    await schedule(application, "a", "b", "c")
    await until(worker, lambda lane: lane["firings"] == 3)
    await worker.end()
    await create_commands_again(application)
    await schedule(application, "d", "e", "f", "g")

    worker.start()
    await worker.ready()
    lane = await until(worker, lambda lane: lane["firings"] == 4)

    assert await delivered(application, 7) == list("abcdefg")
    assert "was deleted and created again" in lane["jump"]


@pytest.mark.soak
async def test_a_topic_that_was_created_again_under_a_worker_that_runs_is_read_once(
    application: Application,
) -> None:
    worker = await application.start_worker(session_timeout=STOPPED)
    await schedule(application, "a", "b", "c")
    await until(worker, lambda lane: lane["firings"] == 3)
    worker.send_signal(signal.SIGSTOP)
    await create_commands_again(application)
    await schedule(application, "d", "e", "f", "g", "h")  # longer than the old one: it has the offset to read next
    worker.send_signal(signal.SIGCONT)

    lane = await until(worker, lambda lane: lane["firings"] == 8)
    assert lane["jumps"] == 1
    assert "was deleted and created again" in lane["jump"]

    await worker.end()
    worker.start()
    await worker.ready()
    await schedule(application, "i")
    lane = await until(worker, lambda lane: lane["firings"] == 1)
    assert lane["jumps"] == 0
    assert await delivered(application, 9) == list("abcdefghi")


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_topic_that_is_away_for_longer_is_read_soon_after_it_is_created_again(
    application: Application, admin: AIOKafkaAdminClient
) -> None:
    worker = await application.start_worker()
    await schedule(application, "a")
    await until(worker, lambda lane: lane["firings"] == 1)
    await admin.delete_topics([application.settings.topics.commands])
    await worker.shows(lambda info: not info["lanes"])  # nothing is left to read that could fail
    metrics = await metrics_of(worker)
    assert f'light_scheduler_commands_topic_info{{topic="{application.settings.topics.commands}"}} 1.0' in metrics
    assert "light_scheduler_lane_state{" not in metrics
    await asyncio.to_thread(create_topics, application.settings)

    await schedule(application, "b")
    lane = await until(worker, lambda lane: lane["firings"] == 1)
    assert lane["jumps"] == 1
    assert await delivered(application, 2) == ["a", "b"]


async def test_commands_that_are_deleted_while_a_worker_that_runs_has_not_read_them_are_counted(
    application: Application, admin: AIOKafkaAdminClient
) -> None:
    worker = await application.start_worker(session_timeout=STOPPED)
    await schedule(application, "a")
    position = (await until(worker, lambda lane: lane["firings"] == 1))["position"]
    worker.send_signal(signal.SIGSTOP)
    place = TopicPartition(application.settings.topics.commands, 0)
    await fetches_are_answered(application, place, position)
    await schedule(application, "lost-1", "lost-2", "b")
    await admin.delete_records({place: RecordsToDelete(before_offset=position + 2)})
    worker.send_signal(signal.SIGCONT)

    lane = await until(worker, lambda lane: lane["jumps"] and lane["firings"] == 2)

    assert await delivered(application, 2) == ["a", "b"]
    assert (lane["jumps"], lane["expired_commands"]) == (1, 2)


async def fetches_are_answered(application: Application, place: TopicPartition, end: int) -> None:
    """Return when a stopped worker's fetch is answered: one that begins later and waits as long has been."""
    client = AIOKafkaClient(bootstrap_servers=application.bootstrap_servers)
    await client.bootstrap()
    try:
        fetch = FetchRequest(FETCH_MAX_WAIT_MS, 1, 1 << 20, 1, [(place.topic, [(place.partition, end, 1 << 20)])])
        await client.send(client.get_random_node(), fetch)
    finally:
        await client.close()


async def test_nothing_waits_to_be_read_behind_markers_and_aborted_commands(application: Application) -> None:
    worker = await application.start_worker()
    await schedule(application, "a")
    await until(worker, lambda lane: lane["lag"] == 0)
    commands, target = application.settings.topics.commands, application.target.encode()
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers, transactional_id=commands)
    async with producer:
        for number in range(3):
            await producer.begin_transaction()
            headers = [("schedule-id", b"aborted"), ("schedule-target-topic", target)]
            await producer.send_and_wait(commands, b"x", b"k", partition=0, headers=headers)
            await (producer.abort_transaction() if number else producer.commit_transaction())

    await until(worker, lambda lane: lane["outcomes"].get("scheduled") == 2 and lane["lag"] == 0)
    metrics = await metrics_of(worker)
    assert re.search(r'light_scheduler_command_lag\{[^}]*partition="0"[^}]*\} 0.0', metrics)


@pytest.mark.soak
async def test_bulk_commands_reach_the_schedules_of_a_topic_that_was_deleted(application: Application) -> None:
    worker = await application.start_worker()
    async with SchedulerClient(application.bootstrap_servers, app_id=application.settings.app_id) as client:
        for number in range(20):
            await client.schedule(f"former-{number}", after="1h", topic=application.target)
        await worker.end()
        await create_commands_again(application)
        worker.start()
        await worker.ready()
    async with SchedulerClient(application.bootstrap_servers, app_id=application.settings.app_id) as client:
        assert (await client.cancel_many(id_prefix="former-")).count == 20


async def create_commands_again(application: Application) -> None:
    await application.delete_topics(application.settings.topics.commands)
    await asyncio.to_thread(create_topics, application.settings)
