"""A rolling upgrade: workers of an earlier version, which are replaced by those of this one while they are at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from light_scheduler.client import SchedulerClient
from light_scheduler.wire.state_format import FORMAT_VERSION

from .application import Application, WorkerProcess
from .reading import header, read_all
from .versions import BEFORE_LACKING, EarlierWorker, Version, earlier_worker, writes_this_format
from .waiting import eventually

WORKERS, PARTITIONS = 3, 6
LISTED, BULK = 60, 600
WITHIN_S = 90.0


class Pair(NamedTuple):
    """A worker of the earlier version, and the one that replaces it: in its place, with its folder and its name."""

    earlier: EarlierWorker
    current: WorkerProcess


def pairs_of(application: Application, version: Version, **options: str) -> list[Pair]:
    current = [application.new_worker(instance_id=f"worker-{number}", **options) for number in range(WORKERS)]
    return [Pair(earlier_worker(application, version, worker), worker) for worker in current]


async def start(worker: WorkerProcess) -> None:
    worker.start()
    await worker.ready()


def running(pairs: Sequence[Pair]) -> list[WorkerProcess]:
    return [worker for pair in pairs for worker in pair if worker.is_running]


async def answer(worker: WorkerProcess, path: str) -> Any:
    """Return what a worker answers, None if it cannot at the moment."""
    async with aiohttp.ClientSession() as session, session.get(worker.url + path) as response:
        return await response.json(content_type=None) if response.status == 200 else None


async def answered(worker: WorkerProcess, path: str) -> None:
    """Wait until a worker can answer: on a busy machine, another one may be too slow for it."""
    await eventually(
        lambda: answer(worker, path), within=WITHIN_S, every=0.1, what=f"an answer from {worker.url}{path}"
    )


async def each_knows_all(workers: Sequence[WorkerProcess]) -> None:
    """Wait until each worker lists the schedules of all, which it asks the others for; it finds each by its id."""
    for worker in workers:

        async def lists_all(worker: WorkerProcess = worker) -> bool:
            page = await answer(worker, f"/api/v1/tenants/default/schedules?id_prefix=listed-&limit={LISTED + 1}")
            return page is not None and len(page["schedules"]) == LISTED

        await eventually(lists_all, within=WITHIN_S, every=0.1, what=f"{worker.url}: schedules of all workers")
        for number in range(0, LISTED, 7):
            await answered(worker, f"/api/v1/tenants/default/schedules/listed-{number}")
        if writes_this_format(worker):  # before it, there was no overview
            await answered(worker, "/api/v1/overview")  # it may lack partitions of the other version, and names them


async def counts_agree(workers: Sequence[WorkerProcess]) -> None:
    """Wait until each worker counts the schedules of all partitions."""
    for worker in workers:

        async def counts_all(worker: WorkerProcess = worker) -> bool:
            document = await answer(worker, "/api/v1/overview")
            return document is not None and not document["missing"] and document["pending"] >= LISTED

        await eventually(counts_all, within=WITHIN_S, every=0.1, what=f"{worker.url}: counts of all partitions")


async def schedule_ahead(client: SchedulerClient, target: str) -> None:
    """Schedule what workers list, and what a bulk command is to cancel."""
    ids = [f"listed-{number}" for number in range(LISTED)] + [f"bulk-{number}" for number in range(BULK)]
    await client.schedule_many({"id": id, "topic": target, "after": "1h"} for id in ids)


async def replaced(pair: Pair) -> None:
    """End the worker of the earlier version in order, and start the one of this version in its place."""
    assert await pair.earlier.end() == 0, pair.earlier.log_end()
    await start(pair.current)


async def killed_and_replaced(pairs: list[Pair], number: int, partitions: int = PARTITIONS) -> None:
    """Kill a worker; start its replacement when both others, one of each version, have taken over its partitions."""
    pairs[number].earlier.kill()
    await serve_all(running(pairs), partitions)
    await start(pairs[number].current)


async def serve_all(workers: Sequence[WorkerProcess], partitions: int = PARTITIONS) -> None:
    """Wait until workers run all partitions."""

    async def run_all() -> bool:
        infos = [await answer(worker, "/info") for worker in workers]
        lanes = [lane for info in infos if info for lane in info["lanes"] if lane["state"] == "running"]
        return {lane["partition"] for lane in lanes} == set(range(partitions))

    await eventually(run_all, within=WITHIN_S, every=0.1, what="all partitions on the workers that are left")


async def dead_letters(application: Application) -> Counter[str | None]:
    """Return how many commands and firings of each tenant were refused."""
    letters = await read_all(application.bootstrap_servers, application.settings.topics.dead_letters)
    return Counter(header(record, "dead-letter-tenant") for record in letters)


def recorded_version(folder: Path) -> Version:
    return Version.unpack(FORMAT_VERSION, folder)


def version_before_lacking(folder: Path) -> Version:
    return Version.of_commit(BEFORE_LACKING, folder)
