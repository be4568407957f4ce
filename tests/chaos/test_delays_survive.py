"""Workers that are killed while they forward delayed records: each arrives once, in order, never early.

The size is that of a quick run; the full one: `pytest tests/chaos/test_delays_survive.py --delayed-records 200000`.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from support.application import Application, WorkerProcess
from support.delayed import Sightings, check, number_of, produce
from support.reading import read_all, read_until
from support.waiting import eventually

from light_scheduler.devkit import EmbeddedCluster

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(400)]

FULL = 200_000


@pytest.fixture
def size(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("delayed_records"))


async def lag_zero(worker: WorkerProcess) -> int:
    """Return how many partitions the rule works on, when none of them has anything left to forward."""
    info = await worker.shows(lambda info: info["delays"] and all(lane["lag"] == 0 for lane in info["delays"]))
    return len(info["delays"])


@pytest.mark.soak
async def test_delayed_records_survive_two_sigkills(application: Application, size: int) -> None:
    delay = 5_000 if size >= FULL else 2_000
    source = f"{application.settings.app_id}-source"
    await application.create_topic(source)
    worker = await application.start_worker(delays=f"later={source}:{delay}ms:{application.target}")
    servers = application.bootstrap_servers
    sightings = await Sightings.open(servers, application.target)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(produce(servers, source, range(size), 4, per_second=10_000))
            for share in (4, 2):
                await sightings.until(size // share, timeout=120)
                worker.kill()
                worker.start()
        await sightings.until(size, timeout=240)
        await worker.ready()
        assert (await lag_zero(worker)) == 4
    finally:
        await sightings.close()
    check(sightings.records, size)
    assert len(await read_all(servers, application.target)) == size
    sent = {number_of(record): record.timestamp for record in await read_all(servers, source)}
    assert all(record.timestamp == sent[number_of(record)] + delay for _, record in sightings.records)


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_frozen_worker_that_wakes_after_another_took_over_forwards_nothing_twice(
    application: Application,
) -> None:
    count, servers = 4_000, application.bootstrap_servers
    source = f"{application.settings.app_id}-source"
    await application.create_topic(source)
    rule = {"delays": f"later={source}:500ms:{application.target}"}
    frozen, other = application.new_worker(**rule), application.new_worker(**rule)
    for worker in (frozen, other):
        worker.start()
    await asyncio.gather(frozen.ready(), other.ready())
    sightings = await Sightings.open(servers, application.target)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(produce(servers, source, range(count), 4, per_second=800))
            await sightings.until(count // 4, timeout=120)
            frozen.send_signal(signal.SIGSTOP)
        await sightings.until(count, timeout=120)  # the other has taken the partitions over
        frozen.send_signal(signal.SIGCONT)

        async def each_has_one_owner() -> bool:
            return sum([len((await worker.get("/info"))["delays"]) for worker in (frozen, other)]) == 4

        await eventually(each_has_one_owner, every=0.1)
        await produce(servers, source, range(count, count + 400), 4, per_second=4_000)
        await sightings.until(count + 400, timeout=120)
    finally:
        await sightings.close()
    check(sightings.records, count + 400)
    assert len(await read_all(servers, application.target)) == count + 400


@pytest.mark.soak
@pytest.mark.every_case
async def test_delayed_records_survive_a_sigkill_of_the_broker(tmp_path: Path) -> None:
    count = 4_000
    with EmbeddedCluster() as cluster:
        (broker,), servers = cluster.nodes, cluster.bootstrap_servers
        application = await Application.create(servers, tmp_path)
        source = f"{application.settings.app_id}-source"
        await application.create_topic(source)
        try:
            await application.start_worker(delays=f"later={source}:1s:{application.target}")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(produce(servers, source, range(count), 4, per_second=800))
                await read_until(servers, [application.target], lambda records: len(records) >= count // 4)
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
            await read_until(servers, [application.target], lambda records: len(records) >= count, timeout=120)
            records = await read_all(servers, application.target)
            dead = await read_all(servers, application.settings.topics.dead_letters)
        finally:
            await asyncio.to_thread(application.close)
    check([(record.timestamp, record) for record in records], count)
    assert dead == []
