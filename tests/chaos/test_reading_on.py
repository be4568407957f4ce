"""A worker that died without a word is waited for by the group; lanes of the others read on meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from support.application import Application, WorkerProcess
from support.reading import read_until
from support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

SESSION_TIMEOUT_S = 40
"""Longer than the start of a worker on a busy machine, and what is sent and read then."""
WAITING = "PreparingRebalance"


async def group_state(application: Application) -> str:
    admin = AIOKafkaAdminClient(bootstrap_servers=application.bootstrap_servers)
    await admin.start()
    try:
        (response,) = await admin.describe_consumer_groups([application.settings.app_id])
        _, _, state, *_ = response.groups[0]
        return str(state)
    finally:
        await admin.close()


async def partitions_of(worker: WorkerProcess) -> set[int]:
    lanes = (await worker.get("/info"))["lanes"]
    return {int(lane["partition"]) for lane in lanes if lane["state"] == "running"}


@pytest.mark.soak
@pytest.mark.every_case
async def test_lanes_that_stay_take_commands_while_the_group_waits_for_a_dead_worker(application: Application) -> None:
    alive, dying, guest = (application.new_worker(session_timeout=f"{SESSION_TIMEOUT_S}s") for _ in range(3))
    for worker in (alive, dying):
        worker.start()
    await asyncio.gather(alive.ready(), dying.ready())

    async def halves() -> bool:
        return len(await partitions_of(alive)) == len(await partitions_of(dying)) == 2

    await eventually(halves, every=0.05)
    own = await partitions_of(alive)

    dying.kill()
    guest.start()

    async def group_waits() -> bool:
        return await group_state(application) == WAITING

    await eventually(group_waits, within=SESSION_TIMEOUT_S, every=0.05)
    async with application.sender() as send:
        sent = [await send(f"s-{number}", b"", target_topic=application.target, after=0) for number in range(40)]
    expected = {f"s-{number}".encode() for number, record in enumerate(sent) if record.partition in own}
    records = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= len(expected)
    )

    assert {record.key for record in records} == expected
    assert await group_state(application) == WAITING
    records = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= 40, timeout=120
    )
    assert len({record.key for record in records}) == len(records) == 40
