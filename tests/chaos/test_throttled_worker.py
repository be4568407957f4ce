"""A worker whose producers have a quota: everything comes, later."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from support.application import Application
from support.quotas import throttle_producers
from support.reading import header, read_until

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.model import EventType

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

UNDISTURBED = {EventType.SCHEDULED, EventType.FIRED, EventType.FINISHED}


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_throttled_worker_makes_its_transactions_smaller_until_they_are_done_in_time(tmp_path: Path) -> None:
    """As large as they are without a quota, none would ever end within its deadline."""
    count, size = 60, 100_000
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        application = await Application.create(servers, tmp_path, transaction_timeout="5s", partitions="1")
        try:
            worker = await application.start_worker()
            due = SystemClock().now() + 8_000
            async with application.client() as client:
                await client.schedule_many(
                    {"id": f"large-{number}", "payload": b"x" * size, "topic": application.target, "at": due}
                    for number in range(count)
                )
            await throttle_producers(servers, 250_000)
            came = await read_until(servers, [application.target], lambda records: len(records) >= count, timeout=180)
            await throttle_producers(servers, None)
            history = await application.history()
            info = await worker.get("/info")
        finally:
            await asyncio.to_thread(application.close)

    assert Counter(header(record, "schedule-id") for record in came) == {
        f"large-{number}": 1 for number in range(count)
    }
    assert {event.event for event in history} <= UNDISTURBED, "to be throttled is no refusal"
    assert all(lane["state"] == "running" for lane in info["lanes"])
