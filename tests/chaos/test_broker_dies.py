"""The broker is killed under load and comes back: everything waits, nothing is lost, doubled or spent."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from pathlib import Path

import pytest
from support.application import Application
from support.reading import header, read_all, read_until

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedBroker

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

COUNT = 2_000
SPREAD_MS = 8_000


async def test_firings_survive_a_sigkill_of_the_broker(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        try:
            await application.start_worker()
            start = SystemClock().now() + 2_000
            payloads = [hashlib.sha256(b"%d" % number).digest() for number in range(COUNT)]
            async with application.client() as client:
                await client.schedule_many(
                    {
                        "id": f"s-{number}",
                        "payload": payloads[number],
                        "topic": application.target,
                        "at": start + number * SPREAD_MS // COUNT,
                    }
                    for number in range(COUNT)
                )
            await read_until(broker.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT // 4)

            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)

            await read_until(
                broker.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT, timeout=120
            )
            records = await read_all(broker.bootstrap_servers, application.target)
            dead = await read_all(broker.bootstrap_servers, application.settings.topics.dead_letters)
        finally:
            await asyncio.to_thread(application.close)

    assert Counter(header(record, "schedule-id") for record in records) == Counter(
        {f"s-{number}": 1 for number in range(COUNT)}
    )
    assert {header(record, "schedule-id"): record.value for record in records} == {
        f"s-{number}": payload for number, payload in enumerate(payloads)
    }
    assert all(int(header(record, "schedule-due") or 0) <= record.timestamp for record in records)
    assert dead == [], "an outage is no firing's failure"
