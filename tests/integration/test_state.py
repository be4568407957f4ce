"""A worker's local state: when it is used, when it is rebuilt, and when a worker refuses to touch it."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import sys
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application, WorkerProcess
from support.reading import header, read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.rocks import WRITE_BUFFER_BYTES, RocksStore
from light_scheduler.wire.state import POSITION_KEY, SCHEDULE_KIND, CommandsLog, encode_position, identity

pytestmark = pytest.mark.integration

APPLIED = re.compile(r"lane \S+-(\d+) runs: (\d+) changelog records applied")


def applied(worker: WorkerProcess) -> int:
    """Return how many changelog records the worker's lanes applied when they last started, as their log says."""
    last = {match[1]: int(match[2]) for match in APPLIED.finditer(worker.log.read_text(errors="replace"))}
    return sum(last.values())


def files_of(application: Application, worker: WorkerProcess) -> set[tuple[str, str]]:
    """Return (folder, name) of each file with rows in the worker's local copies."""
    files = (worker.data_dir / application.settings.app_id).glob("*/*.sst")
    return {(file.parent.name, file.name) for file in files}


def state_folders(application: Application, worker: WorkerProcess) -> list[str]:
    return sorted(folder.name for folder in (worker.data_dir / application.settings.app_id).iterdir())


async def schedule_some(application: Application, count: int) -> None:
    async with application.client() as client:
        await client.schedule_many(
            ({"id": f"s-{number}", "topic": application.target, "after": "1h"} for number in range(count)), wait=True
        )


async def pending(worker: WorkerProcess) -> int:
    return pending_in(await worker.get("/info"))


def pending_in(info: Any) -> int:
    return sum(lane["pending"] for lane in info["lanes"])


async def test_a_restart_goes_on_from_the_local_copy(application: Application) -> None:
    worker = await application.start_worker()
    await schedule_some(application, 200)
    await worker.shows(lambda info: pending_in(info) == 200)
    assert await worker.end() == 0
    assert len(state_folders(application, worker)) == 4

    worker.start()
    await worker.ready()

    assert await pending(worker) == 200
    assert applied(worker) == 0


async def test_a_worker_that_was_killed_reads_again_what_its_local_copy_had_only_in_memory(
    application: Application,
) -> None:
    worker = await application.start_worker()
    before = files_of(application, worker)
    await schedule_some(application, 200)
    lanes = (await worker.shows(lambda info: pending_in(info) == 200))["lanes"]
    worker.kill()
    # A lane writes what it has in memory to a file every ten minutes, the first time sooner.
    written = {folder for folder, _ in files_of(application, worker) - before}
    in_memory = [lane for lane in lanes if f"{lane['topic']}-{lane['partition']}" not in written]
    assert in_memory

    worker.start()
    await worker.ready()

    assert await pending(worker) == 200
    assert applied(worker) >= sum(lane["pending"] for lane in in_memory)
    assert sum(lane["rebuilds"] for lane in (await worker.get("/info"))["lanes"]) == 0


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_copy_from_a_changelog_that_was_deleted_and_made_again_is_thrown_away(application: Application) -> None:
    worker = await application.start_worker()
    await schedule_some(application, 50)
    await worker.end()
    names = application.settings.topics
    await application.delete_topics(names.commands, names.changelog(names.commands))
    await asyncio.to_thread(create_topics, application.settings)

    worker.start()
    await worker.ready()

    assert await pending(worker) == 0


@pytest.mark.soak
@pytest.mark.every_case
async def test_topics_that_are_deleted_and_made_again_one_by_one_are_used_once_all_are_there(
    served: Application,
) -> None:
    (worker,), names = served.workers, served.settings.topics
    changelog = names.changelog(names.commands)
    await served.delete_topics(names.commands, changelog)
    await served.create_topic(names.commands)

    def lacks_changelog(info: Any) -> bool:
        return any(f"{changelog} does not exist" in (lane["reason"] or "") for lane in info["lanes"])

    await worker.shows(lacks_changelog)
    await asyncio.to_thread(create_topics, served.settings)
    await worker.shows(lambda info: [lane["state"] for lane in info["lanes"]] == ["running"] * 4)
    async with served.client() as client:
        await client.schedule("now", b"now", topic=served.target, after=0)
    records = await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) >= 1)
    assert [header(record, "schedule-id") for record in records] == ["now"]


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_copy_older_than_the_changelog_keeps_tombstones_is_thrown_away(application: Application) -> None:
    worker = await application.start_worker()
    await schedule_some(application, 50)
    await worker.end()
    # A schedule that was cancelled long ago, in a copy that has not heard of it: its tombstone may be gone by now.
    for folder in state_folders(application, worker):
        table = ScheduleTable(RocksStore(worker.data_dir / application.settings.app_id / folder))
        long_ago = SystemClock().now() - 2 * 86_400_000
        table.write({}, msgspec.structs.replace(table.checkpoint, complete_at=long_ago))
        table.close()

    worker.start()
    await worker.ready()

    assert await pending(worker) == 50
    assert applied(worker) >= 50, "from the changelog alone"


async def test_state_of_a_newer_version_stops_the_worker_and_is_left_as_it_is(application: Application) -> None:
    worker = await application.start_worker()
    await worker.end()
    changelog = application.settings.topics.changelog(application.settings.topics.commands)
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    await producer.send_and_wait(changelog, b"\x63newer", SCHEDULE_KIND + identity("default", "x"), partition=0)
    await producer.stop()

    worker.start()
    await worker.ended()

    log = worker.log.read_text(errors="replace")
    assert "format 99" in log
    assert "run the newer version" in log
    (record,) = await read_all(application.bootstrap_servers, changelog)
    assert record.value == b"\x63newer"


@pytest.mark.soak
async def test_the_state_of_another_application_stops_the_worker_before_it_writes_anything(
    application: Application,
) -> None:
    changelog = application.settings.topics.changelog(application.settings.topics.commands)
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    foreign = encode_position(7, CommandsLog("", "orders", "eu"))
    await producer.send_and_wait(changelog, foreign, POSITION_KEY, partition=0)
    await producer.stop()

    worker = application.new_worker()
    worker.start()
    await worker.ended()

    log = worker.log.read_text(errors="replace")
    assert f"topic {changelog} holds the state of application orders with the commands topic eu" in log
    (record,) = await read_all(application.bootstrap_servers, changelog)
    assert record.value == foreign


@pytest.mark.soak
async def test_a_worker_waits_for_its_topics(application: Application) -> None:
    await application.delete_topics(application.settings.topics.commands)
    worker = application.new_worker()
    worker.start()
    await eventually(lambda: b"topics create" in worker.log.read_bytes() or not worker.is_running)
    assert worker.is_running

    await asyncio.to_thread(create_topics, application.settings)
    await worker.ready()
    async with application.client() as client:
        await client.schedule("now", b"now", topic=application.target, after=0)
    records = await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= 1)
    assert [header(record, "schedule-id") for record in records] == ["now"]


async def test_sigterm_ends_a_worker_in_order_and_soon(served: Application) -> None:
    (worker,) = served.workers
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(worker.end(), 15) == 0
    log = worker.log.read_text(errors="replace")
    assert "Traceback" not in log
    assert "Unclosed" not in log


@pytest.mark.soak
async def test_a_damaged_copy_is_thrown_away_and_rebuilt_with_a_warning(application: Application) -> None:
    worker = await application.start_worker()
    await schedule_some(application, 200)
    assert await worker.end() == 0
    files = list((worker.data_dir / application.settings.app_id).glob("*/*.sst"))
    assert files
    for file in files:
        content = bytearray(file.read_bytes())
        content[:200] = b"\xff" * 200  # of the first block of rows
        file.write_bytes(content)

    worker.start()
    await worker.ready()

    assert await pending(worker) == 200
    assert applied(worker) >= 200
    log = worker.log.read_text(errors="replace")
    assert "is damaged: Corruption" in log
    assert "Traceback" not in log
    assert sum(lane["rebuilds"] for lane in (await worker.get("/info"))["lanes"]) >= 1


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
async def test_a_full_disk_stops_the_worker_with_a_clear_error_and_loses_nothing(application: Application) -> None:
    worker = await application.start_worker()
    await schedule_some(application, 10)
    _, hard = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (300_000, hard))
    at_once = WRITE_BUFFER_BYTES * 3  # of one partition: a write has to come after the flush that fails
    async with application.client() as client:
        await client.schedule_many(
            {
                "id": f"big-{number}",
                "key": b"k",
                "payload": os.urandom(100_000),
                "topic": application.target,
                "after": "1h",
            }
            for number in range(at_once // 100_000)
        )
    await worker.ended()
    assert "there is no room for local state in" in worker.log.read_text(errors="replace")

    worker.start()
    await worker.ready()

    await worker.shows(lambda info: pending_in(info) == 10 + at_once // 100_000)
