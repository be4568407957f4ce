"""The lanes of a worker: one for each partition of a commands topic that the group has assigned to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

from aiokafka import TopicPartition

from light_scheduler.kafka.supervision import CLOSE_TIMEOUT_S
from light_scheduler.kafka.target_outages import WHOLE_TOPIC, Outage, Outages
from light_scheduler.model import EventType
from light_scheduler.model.lane_state import LaneState
from light_scheduler.model.place import Place
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.standby import Standby
from light_scheduler.tables.status import StandbyStatus

from .lane import Lane
from .status import LaneStatus, TargetStatus
from .tenant_firings import TenantFirings
from .topic_totals import TopicTotals

FENCE_WAIT_S = 2.0
"""No heartbeat is sent while an assignment is handled: fencing that takes longer goes on beside it."""

CATCH_UP_S = 2.0
"""How long a view waits for a lane whose commit is not answered; then it goes without the lane."""

NOTHING: set[TopicPartition] = set()

log = logging.getLogger(__name__)


class Lanes:
    """Opens and closes lanes as assignments come.

    `new_lane` makes the lane of a partition, `new_standby` what keeps a copy of another worker's;
    `release` lets go of what the lanes share, when all are closed for good; `outages` says which targets are away, and
    `firings` what the lanes have delivered, and `totals` what they have done of each commands topic.
    """

    def __init__(
        self,
        new_lane: Callable[[TopicPartition], Lane],
        new_standby: Callable[[TopicPartition], Standby],
        release: Callable[[], Awaitable[None]],
        outages: Outages | None = None,
        firings: TenantFirings | None = None,
        totals: Mapping[str, TopicTotals] | None = None,
    ) -> None:
        self._new_lane = new_lane
        self._new_standby = new_standby
        self._release = release
        self._outages = Outages(time.monotonic) if outages is None else outages
        self._firings = TenantFirings() if firings is None else firings
        self._totals = {} if totals is None else totals
        self._lanes: dict[TopicPartition, Lane] = {}
        self._standbys: dict[TopicPartition, Standby] = {}
        self._closing: dict[TopicPartition, asyncio.Task[None]] = {}
        self._is_closed = False
        self.highwater: Callable[[TopicPartition], int | None] = lambda _: None
        """Where a commands partition ends, as far as the fetcher knows."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def get(self, tp: TopicPartition) -> Lane | None:
        """Return the lane of a partition."""
        return self._lanes.get(tp)

    async def assign(self, partitions: set[TopicPartition], standbys: set[TopicPartition] = NOTHING) -> None:
        """6. Keep the lanes that stayed, close the lost ones, fence the new ones before anything is consumed.

        `standbys` are the partitions of other workers to keep a copy of. A lane takes over what its standby has. Does
        nothing after `close`: while several workers stop at once, the group still shares their partitions out.
        """
        if self._is_closed:
            return
        for tp in self._lanes.keys() - partitions:
            self._close(tp, self._lanes.pop(tp))
        for tp in self._standbys.keys() - partitions - standbys:
            self._close(tp, self._standbys.pop(tp))
        new = [self._new_lane(tp) for tp in sorted(partitions - self._lanes.keys())]
        for lane in new:
            self._lanes[lane.tp] = lane
            standby = self._standbys.pop(lane.tp, None)
            warm = None if standby is None else asyncio.create_task(standby.hand_over())
            lane.start(self._closing.get(lane.tp), warm)
        for tp in sorted(standbys - partitions - self._standbys.keys()):
            self._standbys[tp] = self._new_standby(tp)
            self._standbys[tp].start(self._closing.get(tp))
        waits = [asyncio.create_task(lane.fenced.wait()) for lane in new]
        if waits:
            _, late = await asyncio.wait(waits, timeout=FENCE_WAIT_S)
            for wait in late:
                wait.cancel()
            log.info("%d lanes: %d new, %d of them not fenced yet", len(self._lanes), len(new), len(late))

    async def close(self) -> None:
        """Close all lanes, side by side, then what they share."""
        self._is_closed = True
        for owned in (self._lanes, self._standbys):
            for tp in list(owned):
                self._close(tp, owned.pop(tp))
        if self._closing:
            await asyncio.wait(self._closing.values(), timeout=CLOSE_TIMEOUT_S + 5.0)
        await self._release()

    def tables(self) -> Mapping[tuple[str, int], ScheduleTable]:
        """Return the tables of the lanes that run: (commands topic, partition) -> table."""
        return {
            (lane.tp.topic, lane.tp.partition): lane.copy.table
            for lane in self._lanes.values()
            if lane.state is LaneState.RUNNING and lane.copy.table is not None
        }

    async def catch_up(self) -> set[tuple[str, int]]:
        """Wait until tables have what was committed before the call; return those that do not get there in time.

        The answer to a command is part of the transaction that carries it out, and can be read a moment before the
        lane has applied that.
        """
        waits = {lane.tp: asyncio.create_task(lane.applied()) for lane in self._lanes.values() if lane.is_committing}
        if not waits:
            return set()
        try:
            await asyncio.wait(waits.values(), timeout=CATCH_UP_S)
            return {(tp.topic, tp.partition) for tp, wait in waits.items() if not wait.done()}
        finally:
            for wait in waits.values():
                wait.cancel()

    def status(self) -> list[LaneStatus]:
        """Return the state of every lane."""
        return [_status(lane, self.highwater(lane.tp)) for lane in self._lanes.values()]

    def standbys(self) -> list[StandbyStatus]:
        """Return how warm the copies of other workers' partitions are."""
        return [standby.status() for standby in self._standbys.values()]

    def tenant_firings(self) -> TenantFirings:
        """Return what this worker has delivered of each tenant."""
        return self._firings

    def topic_totals(self) -> Mapping[str, TopicTotals]:
        """Return what this worker has done of each commands topic."""
        return self._totals

    def targets(self) -> list[TargetStatus]:
        """Return the target topics that cannot be written to, by name."""
        by_topic: dict[str, list[tuple[Place, Outage]]] = {}
        for place, outage in self._outages:
            by_topic.setdefault(place[0], []).append((place, outage))
        return [self._target_status(topic, by_topic[topic]) for topic in sorted(by_topic)]

    def _target_status(self, topic: str, outages: list[tuple[Place, Outage]]) -> TargetStatus:
        partitions = sorted(partition for (_, partition), _ in outages)
        tables = [lane.copy.table for lane in self._lanes.values() if lane.copy.table is not None]
        return TargetStatus(
            topic=topic,
            partitions=[] if partitions[0] == WHOLE_TOPIC else partitions,
            unavailable_since=min(outage.since for _, outage in outages),
            waiting=sum(table.held.count(place) for table in tables for place, _ in outages),
            reason="; ".join(sorted({outage.reason for _, outage in outages})),
        )

    def _close(self, tp: TopicPartition, closed: Lane | Standby) -> None:
        task = asyncio.create_task(closed.close(), name=f"closing {tp.topic}-{tp.partition}")
        self._closing[tp] = task
        task.add_done_callback(lambda done: self._closing.pop(tp) if self._closing.get(tp) is done else None)


def _status(lane: Lane, end: int | None) -> LaneStatus:
    counters, table = lane.counters, lane.copy.table
    position = None if table is None else table.checkpoint.position
    events = counters.events
    partitioning = lane.partitioning
    return LaneStatus(
        topic=lane.tp.topic,
        partition=lane.tp.partition,
        state=lane.state.value,
        reason=lane.reason or lane.readable.reason,
        restore=None if lane.copy.restoration is None else lane.copy.restoration.status(),
        pending=0 if table is None else table.pending,
        position=position,
        lag=None if position is None or end is None else max(0, end - lane.intake.done_before(position)),
        oldest_due=lane.next_due,
        outcomes={outcome.value: count for outcome, count in counters.outcomes.items()},
        firings=events[EventType.FIRED],
        expired=events[EventType.EXPIRED],
        dead_letters=events[EventType.REJECTED] + events[EventType.DEAD_LETTERED] + events[EventType.MISSED],
        throttled=counters.throttled,
        over_quota=counters.over_quota,
        delayed=counters.delayed,
        waiting=counters.waiting,
        lost_results=counters.lost_results,
        forwarded=counters.forwarded,
        unsent=counters.unsent,
        partitions=None if partitioning is None else partitioning.partitions,
        settled=partitioning is None or partitioning.former is None or lane.tp.partition in partitioning.settled,
        moved=counters.moved,
        adopted=counters.adopted,
        relayed=counters.relayed,
        unreported=counters.unreported,
        transactions=counters.transactions,
        staged=counters.staged,
        unstaged=counters.unstaged,
        restarts=counters.restarts,
        clock_skew=lane.skew.ms,
        rebuilds=lane.copy.rebuilds,
        jumps=lane.input.jumps,
        expired_commands=lane.input.expired,
        jump=lane.input.problem,
        lateness=counters.lateness,
        probe=lane.context.probe.status,
    )
