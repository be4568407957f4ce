"""Lost state that is rebuilt by processes of their own, which are killed, or lose their worker."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from rich.console import Console
from support.application import Application, WorkerProcess
from support.processes import process_runs, rebuilders
from support.reading import header, read_until
from support.waiting import eventually

from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.topic_admin import topic_id
from light_scheduler.tables import ScheduleTable, layout, rebuilding
from light_scheduler.tables.cell_changes import Group
from light_scheduler.tables.changelog import PartitionLogs, length, reading
from light_scheduler.tables.count_rows import CHANGES
from light_scheduler.tables.counts import Counts
from light_scheduler.tables.rebuilding import Rebuilding
from light_scheduler.tables.recovery import Following, PartitionState, Restoration
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.usable_copy import ChangelogFacts, open_table
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

COUNT = rebuilding.MANY_OFFSETS + 5_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application of one partition with so many schedules that its state is worth a process."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="1")
    workload = Workload(
        messages=COUNT, payloads=Payloads(20, 1), target=application.target, due=DueTimes(SystemClock().now() + HOUR_MS)
    )
    commands = application.settings.topics.commands
    await asyncio.to_thread(produce, kafka.bootstrap_servers, commands, workload, Progress(Console(quiet=True)))
    worker = await application.start_worker()
    await settled(worker)
    yield application
    application.close()


async def settled(worker: WorkerProcess) -> None:
    """Wait until a worker runs and has every schedule."""
    await worker.ready()
    await worker.shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == COUNT)


async def rebuilder_of(worker: WorkerProcess) -> int:
    """Wait until a process rebuilds a table for a worker; return its id."""
    return await eventually(lambda: next(rebuilders(worker.pid), 0))


async def gone(pid: int) -> None:
    """Wait until a process is no more."""
    await eventually(lambda: not process_runs(pid))


@pytest.mark.soak
async def test_a_worker_that_lost_its_state_has_it_rebuilt_whoever_is_killed_meanwhile(
    application: Application,
) -> None:
    application.workers[0].kill()
    worker = application.new_worker()
    worker.start()
    os.kill(await rebuilder_of(worker), signal.SIGKILL)
    await settled(worker)
    assert "exited with code -9; the worker rebuilds it" in worker.log.read_text()
    worker.kill()

    other = application.new_worker()
    other.start()
    pid = await rebuilder_of(other)
    other.kill()
    await gone(pid)
    other.start()
    await gone(await rebuilder_of(other))
    await settled(other)
    assert "the worker rebuilds it" not in other.log.read_text()
    (lane,) = (await other.get("/info"))["lanes"]
    assert lane["restore"]["done"] == lane["restore"]["total"] >= lane["restore"]["records"] > COUNT

    async with application.client() as client:
        await client.schedule("now", b"now", topic=application.target, after=0)
    (record,) = await read_until(application.bootstrap_servers, [application.target], bool)
    assert header(record, "schedule-id") == "now"


@pytest.mark.soak
@pytest.mark.every_case
async def test_what_a_process_leaves_is_what_the_lane_had_and_what_it_did_not_finish_is_thrown_away(
    application: Application, tmp_path: Path
) -> None:
    (worker,) = application.workers
    assert await worker.end() == 0
    names, servers = application.settings.topics, application.bootstrap_servers
    commands, changelog = TopicPartition(names.commands, 0), TopicPartition(names.changelog(names.commands), 0)
    facts = ChangelogFacts(await asyncio.to_thread(topic_id, servers, changelog.topic), DAY_MS)
    state = PartitionState(facts, PartitionLogs(commands, changelog))
    clients = KafkaClients(servers, 10_000)
    rebuild = Rebuilding(clients, "INFO", "text")
    async with reading(clients) as reader:
        assert await length(changelog, reader) >= rebuilding.MANY_OFFSETS
        assert await length(TopicPartition(names.dead_letters, 0), reader) == 0

    folder = tmp_path / "rebuilt"
    seen: list[Restoration] = []
    assert await rebuild.rebuild(folder, state, Following(lambda: bool(seen), seen.append)) is None
    table = open_table(RocksStore, folder, facts, SystemClock().now())
    assert table.is_empty
    table.close()

    done = await rebuild.rebuild(folder, state, Following(lambda: False, seen.append))
    assert done is seen[-1]
    assert done.records > COUNT
    had = RocksStore(worker.data_dir / application.settings.app_id / f"{commands.topic}-0")
    has = RocksStore(folder)
    assert rows(has) == rows(had)
    assert ScheduleTable(has).pending == COUNT
    had.close()
    has.close()


def rows(store: RocksStore) -> tuple[dict[bytes, bytes], dict[Group, int], dict[int, int]]:
    """Return all that a store holds, and what it counts.

    The checkpoint is left out, which says when it was made, and so are the rows of counts: writes divide them.
    """
    counts = Counts(store)
    held = {
        key: value
        for key, value in store.scan(b"", b"\xff")
        if key != layout.CHECKPOINT_KEY and not key.startswith(CHANGES)
    }
    return held, dict(counts.each_total()), counts.by_day()
