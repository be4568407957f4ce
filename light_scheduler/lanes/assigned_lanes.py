"""The lanes of a worker: one for each commands partition that the group has assigned to it."""

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

from .context.status import LaneStatus, TargetStatus
from .context.tenant_firings import TenantFirings
from .context.topic_totals import TopicTotals
from .lane import Lane

FENCE_WAIT_S = 2.0
"""How long an assignment waits for fencing, as it blocks heartbeats. Longer fencing goes on in the background."""

CATCH_UP_S = 2.0
"""How long a view waits for a lane with an unanswered commit. Then it does without the lane."""

NOTHING: set[TopicPartition] = set()

log = logging.getLogger(__name__)


class Lanes:
    """Opens and closes lanes as assignments change.

    `new_lane` creates the lane of a partition, and `new_standby` the warm standby of another worker's partition.
    `release` frees the resources that lanes share, once all are closed for good. `outages` has the unavailable targets,
    `firings` the firings that the lanes have delivered, and `totals` the counters per commands topic.
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
        """The end offset of a commands partition, as far as the fetcher knows it."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def get(self, tp: TopicPartition) -> Lane | None:
        """Return the lane of a partition, or None."""
        return self._lanes.get(tp)

    async def assign(self, partitions: set[TopicPartition], standbys: set[TopicPartition] = NOTHING) -> None:
        """6. Keep the lanes that stay, close the lost ones, and fence the new ones before anything is consumed.

        `standbys` are other workers' partitions to keep a copy of. A new lane takes over the state of its standby. Does
        nothing after `close`: while several workers stop at once, the group still reassigns their partitions.
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
        """Close all lanes concurrently, then release their shared resources."""
        self._is_closed = True
        for owned in (self._lanes, self._standbys):
            for tp in list(owned):
                self._close(tp, owned.pop(tp))
        if self._closing:
            await asyncio.wait(self._closing.values(), timeout=CLOSE_TIMEOUT_S + 5.0)
        await self._release()

    def tables(self) -> Mapping[tuple[str, int], ScheduleTable]:
        """Return the tables of the running lanes: (commands topic, partition) -> table."""
        return {
            (lane.tp.topic, lane.tp.partition): lane.copy.table
            for lane in self._lanes.values()
            if lane.state is LaneState.RUNNING and lane.copy.table is not None
        }

    async def catch_up(self) -> set[tuple[str, int]]:
        """Wait until the tables have all transactions committed before the call. Return those that are too late.

        The answer to a command is part of the transaction that applies it, so a client can read it a moment before the
        lane has updated its table.
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
        """Return the state of the standbys for other workers' partitions."""
        return [standby.status() for standby in self._standbys.values()]

    def tenant_firings(self) -> TenantFirings:
        """Return the firings that this worker has delivered, per tenant."""
        return self._firings

    def topic_totals(self) -> Mapping[str, TopicTotals]:
        """Return the totals of this worker, per commands topic."""
        return self._totals

    def targets(self) -> list[TargetStatus]:
        """Return the unavailable target topics, ordered by name."""
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
        dropped=counters.dropped,
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
        probe=lane.context.memory.probe.status,
    )
