"""A worker that is older than the state of its partition."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.reading import read_all

from light_scheduler.wire.state import POSITION_KEY
from light_scheduler.wire.state_format import FORMAT_VERSION

pytestmark = pytest.mark.integration


async def test_a_worker_ends_before_it_changes_anything_of_a_partition_that_a_newer_one_wrote_to(
    application: Application,
) -> None:
    names = application.settings.topics
    changelog = names.changelog(names.commands)
    newer = POSITION_KEY, bytes([FORMAT_VERSION + 1]) + bytes(8)
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    try:
        await producer.send_and_wait(changelog, key=newer[0], value=newer[1], partition=0)
    finally:
        await producer.stop()
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"s-{number}", "topic": application.target, "after": 0} for number in range(20)
        )

    worker = application.new_worker(rebuild_processes="0")
    worker.start()

    assert await worker.ended() == 1
    log = worker.log.read_text()
    assert f"lane {names.commands}-0 cannot run, so this worker ends: state was written in format" in log
    assert "run the newer version that wrote it. Nothing was changed" in log
    in_partition = [
        (record.key, record.value)
        for record in await read_all(application.bootstrap_servers, changelog)
        if record.partition == 0
    ]
    assert in_partition == [newer]
