"""Probes of the lanes of a history, as `agents.services.probes` sends them, and what must have become of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from light_scheduler.lanes.lane import Lane
from light_scheduler.model import Headers
from light_scheduler.model.lane_state import LaneState
from light_scheduler.model.probe import PROBE_ID, PROBE_TENANT, ProbeMark
from light_scheduler.wire.probe import NO_VALUE, probe_headers

if TYPE_CHECKING:
    from .world import World

SECRET = b"of the workers"
LAST_S = 9.0
"""How long before the end the last probes are sent at the latest."""


class _Sent(NamedTuple):
    headers: Headers
    key: None = None
    value: bytes = NO_VALUE


async def send_probes(world: World, seconds: float) -> None:
    """Probe each lane, every so many seconds, until shortly before the end of a history.

    A probe that another process has read, while this one was frozen, is not back before its time is over.
    """
    while world.busy_until + world.settle_s - LAST_S > world.loop.time():
        for lane in lanes_of(world):
            if (number := lane.context.memory.probe.begin(world.clock.now())) is not None:
                mark = ProbeMark("sent", number)
                world.kafka.send(lane.tp, [_Sent(probe_headers(mark, lane.tp.topic, lane.tp.partition, SECRET))])
        await asyncio.sleep(seconds)


def wrong_with_probes(world: World) -> str | None:
    """Say what is wrong after a moment without probes: each must be back, and nothing be left of it."""
    for lane in lanes_of(world):
        table, probe = lane.copy.table, lane.context.memory.probe
        if lane.state is not LaneState.RUNNING or table is None:
            continue
        if table.get(PROBE_TENANT, PROBE_ID) is not None:
            return f"a probe is left in {lane.tp}"
        if probe.status is not None and probe.is_under_way:
            return f"the probe of {lane.tp} is not back"
        if probe.status is not None and not probe.status.successes:
            return f"no probe of {lane.tp} came back: {probe.status}"
    return None


def lanes_of(world: World) -> Iterator[Lane]:
    """Yield the lanes of all processes that run."""
    for node in world.nodes.values():
        if not node.is_dead and not node.is_frozen:
            yield from node.lanes
