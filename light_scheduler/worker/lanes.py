"""The lanes of a worker: one for each partition of a commands topic that the group has assigned to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping

from aiokafka import TopicPartition

from light_scheduler.model import EventType
from light_scheduler.tables import ScheduleTable

from .lane import CLOSE_TIMEOUT_S, Lane
from .life import LaneState
from .status import LaneStatus

FENCE_WAIT_S = 2.0
"""No heartbeat is sent while an assignment is handled: fencing that takes longer goes on beside it."""

log = logging.getLogger(__name__)


class Lanes:
    """Opens and closes lanes as assignments come.

    `new_lane` makes the lane of a partition; `room` is set when a lane can take commands again; `release` lets go of
    what the lanes share, when all are closed for good.
    """

    def __init__(
        self, new_lane: Callable[[TopicPartition], Lane], room: asyncio.Event, release: Callable[[], Awaitable[None]]
    ) -> None:
        self._new_lane = new_lane
        self._release = release
        self._lanes: dict[TopicPartition, Lane] = {}
        self._closing: dict[TopicPartition, asyncio.Task[None]] = {}
        self.room = room
        self.highwater: Callable[[TopicPartition], int | None] = lambda _: None
        """Where a commands partition ends, as far as the fetcher knows."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def get(self, tp: TopicPartition) -> Lane | None:
        """Return the lane of a partition."""
        return self._lanes.get(tp)

    async def assign(self, partitions: set[TopicPartition]) -> None:
        """6. Keep the lanes that stayed, close the lost ones, fence the new ones before anything is consumed."""
        for tp in self._lanes.keys() - partitions:
            self._close(tp)
        new = [self._new_lane(tp) for tp in sorted(partitions - self._lanes.keys())]
        for lane in new:
            self._lanes[lane.tp] = lane
            lane.start(self._closing.get(lane.tp))
        waits = [asyncio.create_task(lane.fenced.wait()) for lane in new]
        if waits:
            _, late = await asyncio.wait(waits, timeout=FENCE_WAIT_S)
            for wait in late:
                wait.cancel()
            log.info("%d lanes: %d new, %d of them not fenced yet", len(self._lanes), len(new), len(late))

    async def close(self) -> None:
        """Close all lanes, side by side, then what they share."""
        for tp in list(self._lanes):
            self._close(tp)
        if self._closing:
            await asyncio.wait(self._closing.values(), timeout=CLOSE_TIMEOUT_S + 5.0)
        await self._release()

    def tables(self) -> Mapping[tuple[str, int], ScheduleTable]:
        """Return the tables of the lanes that run: (commands topic, partition) -> table."""
        return {
            (lane.tp.topic, lane.tp.partition): lane.table
            for lane in self._lanes.values()
            if lane.state is LaneState.RUNNING and lane.table is not None
        }

    def status(self) -> list[LaneStatus]:
        """Return the state of every lane."""
        return [_status(lane, self.highwater(lane.tp)) for lane in self._lanes.values()]

    def _close(self, tp: TopicPartition) -> None:
        task = asyncio.create_task(self._lanes.pop(tp).close(), name=f"closing {tp.topic}-{tp.partition}")
        self._closing[tp] = task
        task.add_done_callback(lambda done: self._closing.pop(tp) if self._closing.get(tp) is done else None)


def _status(lane: Lane, end: int | None) -> LaneStatus:
    counters, table = lane.counters, lane.table
    position = None if table is None else table.checkpoint.position
    events = counters.events
    return LaneStatus(
        topic=lane.tp.topic,
        partition=lane.tp.partition,
        state=lane.state.value,
        reason=lane.reason,
        pending=0 if table is None else table.pending,
        position=position,
        lag=None if position is None or end is None else max(0, end - position),
        oldest_due=lane.next_due,
        outcomes={outcome.value: count for outcome, count in counters.outcomes.items()},
        firings=events[EventType.FIRED],
        expired=events[EventType.EXPIRED],
        dead_letters=events[EventType.REJECTED] + events[EventType.DEAD_LETTERED] + events[EventType.MISSED],
        throttled=counters.throttled,
        lost_results=counters.lost_results,
        forwarded=counters.forwarded,
        transactions=counters.transactions,
        unstaged=counters.unstaged,
        restarts=counters.restarts,
        lateness=counters.lateness,
    )
