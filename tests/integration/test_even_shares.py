"""Workers share the partitions out evenly whenever one comes, and those that stay keep what they may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.application import Application, WorkerProcess
from support.reading import header, read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

SESSION = "10s"
COUNT = 60


async def info(worker: WorkerProcess) -> Any:
    return await worker.get("/info")


async def partitions_of(worker: WorkerProcess, part: str = "lanes") -> set[int]:
    return {each["partition"] for each in (await info(worker))[part]}


async def await_shares(workers: list[WorkerProcess], counts: list[int]) -> list[set[int]]:
    """Wait until workers have so many partitions, and copies of all; return what each has."""

    async def shares() -> list[set[int]] | None:
        found = [await partitions_of(worker) for worker in workers]
        copies = [await partitions_of(worker, "standbys") for worker in workers]
        is_so = sorted(map(len, found)) == counts and sorted(number for each in copies for number in each) == [
            0,
            1,
            2,
            3,
        ]
        return found if is_so else None

    shared: list[set[int]] = await eventually(shares, within=60, every=0.1, what=f"shares of {counts}")
    for own, worker in zip(shared, workers, strict=True):
        assert not own & await partitions_of(worker, "standbys")
    return shared


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_third_worker_gets_a_partition_of_two_with_two_each_and_again_after_it_was_killed(
    application: Application,
) -> None:
    workers = [application.new_worker(standby_replicas="1", session_timeout=SESSION) for _ in range(3)]
    for worker in workers[:2]:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers[:2]))
    before = await await_shares(workers[:2], [2, 2])
    async with application.client() as client:
        await client.schedule_many(
            ({"id": f"s-{number}", "topic": application.target, "after": "25s"} for number in range(COUNT)), wait=True
        )

    for comes in ("for the first time", "again after it was killed"):
        workers[2].start()
        await workers[2].ready()
        shares = await await_shares(workers, [1, 1, 2])
        assert len(shares[2]) == 1, comes
        assert all(after <= had for after, had in zip(shares, before, strict=False)), "those that stay only give up"
        workers[2].kill()
        before = await await_shares(workers[:2], [2, 2])

    records = await read_until(application.bootstrap_servers, [application.target], lambda found: len(found) >= COUNT)
    assert sorted(str(header(record, "schedule-id")) for record in records) == sorted(f"s-{n}" for n in range(COUNT))
