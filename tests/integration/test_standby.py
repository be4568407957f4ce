"""Standby replicas: a copy that another worker keeps warm, and takes over with."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import aiohttp
import pytest
from support.application import Application, WorkerProcess
from support.reading import header, read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

COUNT = 400
SESSION_S = 3
RUNS = re.compile(r"lane \S+-(\d+) runs: (\d+) changelog records applied, (\d+) schedules pending")


async def info(worker: WorkerProcess) -> dict[str, Any]:
    document: dict[str, Any] = await worker.get("/info")
    return document


async def warm_pair(application: Application) -> list[WorkerProcess]:
    """Two workers that share the partitions, each with a copy of what the other one has."""
    workers = [application.new_worker(standby_replicas="1", session_timeout=f"{SESSION_S}s") for _ in range(2)]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    await application.shared()
    async with application.client() as client:
        await client.schedule_many(
            ({"id": f"s-{number}", "topic": application.target, "after": "1h"} for number in range(COUNT)), wait=True
        )
    for worker in workers:
        await worker.shows(is_warm)
    return workers


def is_warm(document: dict[str, Any]) -> bool:
    lanes, copies = document["lanes"], document["standbys"]
    return (
        len(lanes) == len(copies) == 2
        and all(copy["lag"] == 0 for copy in copies)
        and sum(each["pending"] for each in [*lanes, *copies]) == COUNT
    )


async def test_a_worker_takes_over_with_the_copy_that_it_has_kept_warm(application: Application) -> None:
    killed, other = await warm_pair(application)
    lost = {lane["partition"]: lane["pending"] for lane in (await info(killed))["lanes"]}
    async with aiohttp.ClientSession() as session, session.get(other.url + "/metrics") as response:
        metrics = await response.text()
    for partition, pending in lost.items():
        labels = f'{{partition="{partition}",topic="{application.settings.topics.commands}"}}'
        assert re.search(rf"light_scheduler_standby_(pending|lag)\{labels[:-1]}", metrics) or pending == 0

    killed.kill()
    killed_at = time.monotonic()
    await other.shows(lambda info: [lane["state"] for lane in info["lanes"]] == ["running"] * 4)
    seconds = time.monotonic() - killed_at

    assert (await info(other))["standbys"] == []
    taken = {int(p): (int(records), int(pending)) for p, records, pending in RUNS.findall(other.log.read_text())}
    assert {partition: taken[partition] for partition in lost} == {p: (0, pending) for p, pending in lost.items()}
    assert seconds < SESSION_S + 5, "on a machine that does other things too"
    async with application.client() as client:
        for number in range(8):
            await client.schedule(f"now-{number}", b"now", topic=application.target, after=0)
    records = await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= 8)
    assert {header(record, "schedule-id") for record in records} == {f"now-{number}" for number in range(8)}


@pytest.mark.soak
async def test_a_copy_moves_to_the_worker_that_comes_and_back_when_it_leaves(application: Application) -> None:
    workers = await warm_pair(application)
    assert await workers[0].end() == 0
    await workers[1].shows(lambda info: len(info["lanes"]) == 4)
    await workers[1].ready()
    async with application.client() as client:
        await asyncio.gather(*(client.cancel(f"s-{number}") for number in range(COUNT // 2)))

    workers[0].start()

    async def everything_is_held_twice() -> bool:
        documents = [await info(worker) for worker in workers if worker.is_running and await answers(worker)]
        held = [each for document in documents for each in [*document["lanes"], *document["standbys"]]]
        return len(held) == 8 and sum(each["pending"] for each in held) == COUNT

    await eventually(everything_is_held_twice, every=0.1)
    for worker in workers:
        assert "starts again" not in worker.log.read_text(errors="replace")
    assert await workers[0].end() == 0
    await workers[1].shows(lambda info: len(info["lanes"]) == 4)
    assert await workers[1].end() == 0


async def answers(worker: WorkerProcess) -> bool:
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(worker.url + "/info") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False
