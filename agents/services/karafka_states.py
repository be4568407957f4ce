"""Publishes the states of commands topics in Karafka's dialect for its Web UI, if their states topics exist."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError
from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.lasting_producer import LastingProducer
from light_scheduler.lanes.lane import Lane
from light_scheduler.model.lane_state import LaneState
from light_scheduler.model.topics import karafka_states_topic
from light_scheduler.tables.days import days_of
from light_scheduler.wire.dialects.karafka_state import (
    STATE_HEADERS,
    STATE_KEY,
    PartitionState,
    State,
    encode_state,
)

LOOK_S = 1.0
SEND_TIMEOUT_S, LAST_SENDS_TIMEOUT_S = 10.0, 5.0
"""Timeouts for sending one state, and for sending all last states on stop."""

INTERVAL_MS, SOON_MS = 15_000, 3_000
"""The state is published at every interval. A change of state is published at the next look and again after `SOON_MS`,
when the lane's table has the records that it was reading.
"""

STATES: dict[LaneState, State] = {LaneState.RESTORING: "loading", LaneState.FAILED: "loading"}

_FAILURES = (SchedulerError, KafkaError, TimeoutError, OSError)

log = logging.getLogger(__name__)


class _Published(NamedTuple):
    """The last published state, and the time of the next one. `low` is the first offset that the lane read."""

    lane: Lane
    low: int
    started_at: int
    state: State
    at: int
    again_at: int


class KarafkaStates(Service):
    """The service of a worker: `lanes` yields its lanes, `topics` are the commands topics that have the dialect."""

    def __init__(
        self,
        lanes: Callable[[], Iterable[Lane]],
        topics: Collection[str],
        connection: Address,
        clock: Clock,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._lanes = lanes
        self._topics = topics
        self._clock = clock
        self._producer = LastingProducer(connection)
        self._published: dict[tuple[str, int], _Published] = {}

    @Service.task
    async def _look(self) -> None:
        while not self.should_stop:
            try:
                for lane in self._lanes():
                    if lane.tp.topic in self._topics:
                        await self._publish(lane)
            except _FAILURES as error:
                log.warning("cannot write states: %s", str(error) or type(error).__name__)
                await self._producer.reset()
            await self.sleep(LOOK_S)

    async def on_stop(self) -> None:
        try:
            async with asyncio.timeout(LAST_SENDS_TIMEOUT_S):
                for last in self._published.values():
                    await self._send(last._replace(state="stopped", at=self._clock.now()), {})
        except _FAILURES as error:
            log.warning("cannot write the last states: %s", str(error) or type(error).__name__)
        await self._producer.close()

    async def _publish(self, lane: Lane) -> None:
        now, state = self._clock.now(), _state_of(lane)
        last = self._published.get(lane.tp)
        if last is None or last.lane is not lane:
            last = _Published(lane, -1, now, "fresh", 0, 0)
        if state == last.state and now < last.again_at:
            return
        topic = karafka_states_topic(lane.tp.topic)
        targets = lane.context.targets
        await targets.resolve({topic})
        if targets[topic].refusal is not None or lane.tp.partition >= targets[topic].partitions:
            return
        table, days, is_change = lane.copy.table, None, state != last.state
        if state == "loaded" and table is not None:
            if not is_change:
                days = await days_of(table, lambda: lane.copy.table is table and not self.should_stop)
            if last.low < 0:
                last = last._replace(low=table.checkpoint.position)
        last = last._replace(state=state, at=now, again_at=now + (SOON_MS if is_change else INTERVAL_MS))
        await self._send(last, days or {})
        self._published[lane.tp] = last

    async def _send(self, published: _Published, daily: dict[int, int]) -> None:
        lane, table = published.lane, published.lane.copy.table
        high = -1 if table is None else table.checkpoint.position - 1
        low = published.low if high >= published.low else -1
        reloads = lane.counters.restarts
        partition = PartitionState(published.state, published.at, published.started_at, low, high, daily, reloads)
        async with asyncio.timeout(SEND_TIMEOUT_S):
            sent = await self._producer.send(
                karafka_states_topic(lane.tp.topic),
                encode_state(partition),
                partition=lane.tp.partition,
                key=STATE_KEY,
                headers=STATE_HEADERS,
            )
            await sent


def _state_of(lane: Lane) -> State:
    if lane.state is LaneState.RUNNING:
        return "loaded" if lane.intake.backlog_taken else "loading"
    if lane.is_closing():
        return "stopped"
    return STATES.get(lane.state, "fresh")
