"""The first firings on a broker that has never seen the application, nor anything else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.application import Application
from support.reading import read_until

from light_scheduler.devkit import EmbeddedBroker

pytestmark = pytest.mark.integration


async def test_the_first_firings_to_new_topics_are_on_time(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        try:
            worker = await application.start_worker()
            targets = [f"new-{number}" for number in range(3)]
            for target in targets:
                await application.create_topic(target)
            async with application.client() as client:
                for target in targets:
                    await client.schedule_many(
                        ({"id": f"{target}-{number}", "topic": target, "after": 300} for number in range(8)), wait=True
                    )
                    await read_until(broker.bootstrap_servers, [target], lambda records: len(records) >= 8)
            lanes = (await worker.get("/info"))["lanes"]
        finally:
            await asyncio.to_thread(application.close)

    assert sum(lane["firings"] for lane in lanes) == 24
    assert sum(lane["restarts"] for lane in lanes) == 0
    assert max(lane["lateness"]["max_ms"] for lane in lanes) < 5_000
