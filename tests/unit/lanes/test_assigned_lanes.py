"""Lanes of what is assigned, until a worker stops."""

from __future__ import annotations

from unittest.mock import AsyncMock, Mock

from aiokafka import TopicPartition

from light_scheduler.lanes.assigned_lanes import Lanes


async def test_what_is_assigned_while_a_worker_stops_gets_no_lane() -> None:
    """Nobody would close it: its transaction would stay open, and its local copy in memory."""
    new_lane, new_standby, release = Mock(), Mock(), AsyncMock()
    lanes = Lanes(new_lane, new_standby, release)
    await lanes.close()
    await lanes.assign({TopicPartition("commands", 0)}, {TopicPartition("commands", 1)})
    assert list(lanes) == []
    assert (new_lane.called, new_standby.called, release.await_count) == (False, False, 1)
