"""The worker process itself, apart from what runs in it."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

from light_scheduler.agents.faust_worker import PlainWorker


async def test_a_worker_that_has_ended_its_services_ends_at_once() -> None:
    await asyncio.wait_for(PlainWorker._sentinel_task(Mock()), 0.5)
