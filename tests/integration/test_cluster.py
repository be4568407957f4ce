"""Looking at a cluster of two workers over HTTP: whichever is asked answers for all."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from functools import partial
from urllib.parse import quote

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.application import Application, WorkerProcess
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import grow_topic

pytestmark = pytest.mark.integration

SCHEDULES = "/api/v1/tenants/default/schedules"


async def get(worker: WorkerProcess, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(worker.url + path) as response:
        return response.status, await response.text()


async def pair(application: Application, **options: str) -> list[WorkerProcess]:
    """Two workers, each of which has partitions."""
    workers = list(await asyncio.gather(*(application.start_worker(**options) for _ in range(2))))
    await application.shared()
    return workers


async def test_any_worker_lists_and_finds_what_all_of_them_hold(application: Application) -> None:
    workers = await pair(application)
    at = SystemClock().now() + 3_600_000
    ids = [f"id/{number:02}" for number in range(40)]
    async with application.client() as client:
        for number, id in enumerate(ids):
            await client.schedule(id, b"%d" % number, topic=application.target, at=at - number)

    for worker in workers:
        for sort, expected in (("id", ids), ("due", ids[::-1])):
            assert [schedule["id"] for schedule in await worker.listed(f"sort={sort}&limit=7")] == expected
        for number in (0, 17, 39):
            found = await worker.get(f"{SCHEDULES}/{quote(ids[number], safe='')}")
            assert (found["id"], found["due"]) == (ids[number], at - number)
        status, text = await get(worker, f"{SCHEDULES}/never-was")
        assert status == 404
        assert "never-was" in text


@pytest.mark.soak
async def test_a_dead_worker_s_partitions_are_named_and_come_back_with_the_other(application: Application) -> None:
    workers = await pair(application, session_timeout="15s")  # until then, nobody has them
    async with application.client() as client:
        for number in range(20):
            await client.schedule(f"{number}", b"", topic=application.target, after="1h")

    workers[0].kill()
    status, text = await get(workers[1], SCHEDULES)
    assert status == 503, "rather than a list with holes"
    assert "missing" in text

    async def is_whole() -> bool:
        return (await get(workers[1], SCHEDULES))[0] == 200

    await eventually(is_whole, every=0.05)
    assert len(await workers[1].listed()) == 20


async def test_a_partition_that_was_added_is_missing_until_a_worker_has_it(application: Application) -> None:
    """Nobody has it while the group waits for a worker that hangs."""
    workers = [await application.start_worker(session_timeout="30s") for _ in range(2)]
    await application.shared()
    topic = application.settings.topics.commands

    async def listing_is(expected: int) -> str | None:
        status, text = await get(workers[0], f"{SCHEDULES}?partition={topic}%5B5%5D")
        return text if status == expected else None

    workers[1].send_signal(signal.SIGSTOP)
    await asyncio.to_thread(grow_topic, application.settings, topic, 6)
    assert "missing" in await eventually(partial(listing_is, 503), every=0.1)
    workers[1].send_signal(signal.SIGCONT)
    await eventually(partial(listing_is, 200), every=0.1)
    status, text = await get(workers[0], f"{SCHEDULES}?partition={topic}%5B6%5D")
    assert (status, "has no partition 6: it has 6" in text) == (400, True)


@pytest.mark.soak
async def test_a_worker_that_comes_back_at_another_address_is_asked_there(application: Application) -> None:
    """It has an `instance_id`, and is back within its session time-out, so the group does not rebalance by itself."""
    names = ("node-0", "node-1")
    first, second = (application.new_worker(instance_id=name, session_timeout="80s") for name in names)
    for worker in (first, second):
        worker.start()
        await worker.ready()
    await first.shows(lambda info: len(info["peers"]) == 2 and all(map(len, info["peers"].values())))
    for gone, other in ((first, second), (second, first)):  # one of them is the group's leader
        assert await gone.end() == 0
        gone.settings = dataclasses.replace(gone.settings, web_port=free_port())
        gone.start()
        await gone.ready()
        info = await gone.shows(lambda info: info["lanes"])
        assert len(info["lanes"]) == 2
        for worker in (gone, other):
            await worker.shows(lambda info: set(info["peers"]) == {first.url, second.url})
    assert "Traceback" not in first.log.read_text() + second.log.read_text()


async def test_a_worker_tells_of_itself(served: Application) -> None:
    (worker,) = served.workers
    async with served.client() as client:
        await client.schedule("soon", b"", topic=served.target, after=0)
        await client.schedule("later", b"", topic=served.target, after="1h")
    info = await worker.shows(
        lambda info: [sum(lane[name] for lane in info["lanes"]) for name in ("firings", "pending")] == [1, 1]
    )
    status, metrics = await get(worker, "/metrics")

    assert info["app_id"] == served.settings.app_id
    assert status == 200
    samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    assert sum(sample.value for sample in samples if sample.name == "light_scheduler_firings_total") == 1
    assert (await get(worker, "/live"))[0] == (await get(worker, "/ready"))[0] == 200
    for faust_page in ("/table/", "/router/", "/stats/", "/graph"):
        assert (await get(worker, faust_page))[0] == 404
