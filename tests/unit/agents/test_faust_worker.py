"""The worker process itself, apart from what runs in it."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import faust
import pytest
from faust.utils import venusian as discovery

from light_scheduler.agents.faust_worker import PlainWorker, without_discovery


async def test_a_worker_that_has_ended_its_services_ends_at_once() -> None:
    await asyncio.wait_for(PlainWorker._sentinel_task(Mock()), 0.5)


def test_agents_are_looked_up_by_faust_only_where_it_is_not_kept_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    attach = Mock()
    monkeypatch.setattr(discovery, "attach", attach)
    app = faust.App("agents")
    with without_discovery():
        app.agent(app.topic("commands"))(nothing)
    attach.assert_not_called()
    app.agent(app.topic("others"))(nothing)
    attach.assert_called_once()


async def nothing(_: faust.StreamT[object]) -> None:
    """Do nothing."""
