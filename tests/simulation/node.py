"""A worker process: real lanes, and what a machine does to them.

Everything that a lane does outside of its own memory passes `reach`. There a fault can strike: before a request has any
effect, or after it, when the answer is not known yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from support.counting import miscounted

from light_scheduler.agents import DueTimer
from light_scheduler.clock import Clock
from light_scheduler.engine import FiringRules
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.lanes.assigned_lanes import Lanes
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.context.memory import LaneMemory
from light_scheduler.lanes.context.probe import LaneProbe
from light_scheduler.lanes.context.rate_post import NoPost
from light_scheduler.lanes.context.staging import Staging
from light_scheduler.lanes.input.intake import Intake
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.tables import MemoryStore, layout
from light_scheduler.tables.services import LaneServices, Timer
from light_scheduler.tables.standby import Standby
from light_scheduler.tables.usable_copy import ChangelogFacts
from light_scheduler.wire import dialect_named
from light_scheduler.wire.native import NativeDialect

from .beside import Beside
from .clients import Clients
from .disk import Disk, Stores
from .faults import Fault, Killed
from .known_topics import KnownTopics
from .letters import NodeOwners, NodePost, carry
from .log import Record
from .names import NAMES, TOPICS
from .partitionings import NodePartitionings
from .probes import SECRET

if TYPE_CHECKING:
    from .world import World

TICK_MS = 20_000
TOMBSTONES_KEPT_MS = 30_000

FILLS_BESIDE = False
"""Whether processes of their own fill lost tables (see `beside`)."""

LOST_BATCH_S = 1.0
POLL_S = 0.05


class Foreign(NativeDialect):
    """Commands of a topic that workers do not write to."""

    forwards = False


class _ClockAhead(NamedTuple):
    """A clock that is so many ms ahead of another one."""

    other: Clock
    ahead: int

    def now(self) -> int:
        return self.other.now() + self.ahead


class _Feed:
    """Where the fetcher reads a lane's commands, and how far it has handed them on."""

    def __init__(self) -> None:
        self.position = 0
        self.fetched_to = -1
        self.handed_at = self.arrives_at = 0.0


class Node:
    """One process on a machine, from its start to its end."""

    def __init__(self, world: World, machine: str, disk: Disk) -> None:
        self.world = world
        self.machine = machine
        self.disk = disk
        self.clock_ahead = world.clock_ahead_of(machine)
        """By how much (ms) its clock is ahead of the brokers'."""
        self.clock: Clock = world.clock if not self.clock_ahead else _ClockAhead(world.clock, self.clock_ahead)
        self.generation = 0
        self.is_dead = False
        self._frozen: asyncio.Event | None = None
        self._frozen_at = 0.0
        self._room = asyncio.Event()
        self._feeds: dict[Lane, _Feed] = {}
        self._rebalances: asyncio.Queue[tuple[int, set[TopicPartition], set[TopicPartition]]] = asyncio.Queue()
        self.partitionings = NodePartitionings(self)
        self.exchange = RateExchange(NodeOwners(self), TOPICS[: len(world.history.topics)])
        self.lanes = Lanes(self._new_lane, self._new_standby, release=self._release)
        self._tasks = [asyncio.create_task(self._follow_group()), asyncio.create_task(self._fetch())]
        if world.history.topics != (True,):
            self._tasks.append(asyncio.create_task(carry(self)))
        world.group.join(self)

    def __repr__(self) -> str:
        return self.machine

    def check_counts(self, store: MemoryStore) -> None:
        """Note it if what a store counts is not what it has, unless it is being filled."""
        if store.get(layout.CHECKPOINT_KEY) is not None and (wrong := miscounted(store)) is not None:
            self.world.failure = f"{self.machine} counts wrongly: {wrong}"

    # -- faults -------------------------------------------------------------------------------------------------------

    async def reach(self, point: str) -> None:
        """Get to a point outside of the process' own memory, if it gets there."""
        if self.is_dead:
            raise Killed
        world = self.world
        fault = world.strike(self, point)
        if self._frozen is not None:
            await self._frozen.wait()
        if fault is not None:
            await self._suffer(fault)
        elif world.random.random() < 0.15:
            await asyncio.sleep(world.random.random() * 0.05)
        if world.outage_until > world.loop.time():
            await asyncio.sleep(world.outage_until - world.loop.time())
        if self._frozen is not None:
            await self._frozen.wait()
        if self.is_dead:
            raise Killed

    def reach_at_once(self, point: str) -> None:
        """The same where nothing can be waited for."""
        if self.is_dead:
            raise Killed
        fault = self.world.strike(self, point)
        if fault is None:
            return
        if fault.kind in ("kill", "power", "wipe", "stop"):
            self.die("kill" if fault.kind == "stop" else fault.kind, fault.seconds)
            raise Killed
        if fault.kind == "freeze":
            self.freeze(fault.seconds)
        if fault.kind == "lose":
            raise OSError("the disk does not answer")

    async def _suffer(self, fault: Fault) -> None:
        kind, seconds = fault
        if kind in ("kill", "power", "wipe"):
            self.die(kind, seconds)
            raise Killed
        if kind == "freeze":
            self.freeze(seconds)
        elif kind == "lose":
            raise KafkaConnectionError("the connection broke")
        elif kind == "stall":
            await asyncio.sleep(seconds)
        elif kind == "outage":
            self.world.outage_until = self.world.loop.time() + seconds
        elif kind == "rebalance":
            self.world.group.rebalance()
        elif kind == "stop":
            self.world.spawn(self._stop(seconds))

    def die(self, kind: str, seconds: float) -> None:
        """End at once; the machine starts another process after a while."""
        self.is_dead = True
        if self._frozen is not None:
            self._frozen.set()
        for task in self._tasks:
            task.cancel()
        self.disk.lose_unflushed(self.world.random, all_of_it=kind == "power")
        if kind == "wipe":
            self.disk.wipe()
        self.world.group.watch(self)
        self.world.start_later(self.machine, self.disk, seconds)

    async def _stop(self, seconds: float) -> None:
        """Close the lanes, leave the group, end."""
        if self.is_dead:
            return
        for task in self._tasks:
            task.cancel()
        try:
            await self.lanes.close()
        except Killed:
            return
        if not self.is_dead:
            self.is_dead = True
            self.world.group.leave(self)
            self.world.start_later(self.machine, self.disk, seconds)

    def freeze(self, seconds: float) -> None:
        if self._frozen is None:
            self._frozen = asyncio.Event()
            self._frozen_at = self.world.loop.time()
            self.world.group.watch(self)
            self.world.thaw_later(self, seconds)

    def thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.set()
            self._frozen = None
            if not self.is_dead and not self.world.group.is_member(self):
                delay = self.world.random.random()  # until a heartbeat tells it
                self.world.loop.call_later(delay, self.world.group.join, self)

    @property
    def is_frozen(self) -> bool:
        return self._frozen is not None

    def silent_for(self) -> float:
        """How long (s) the group has heard nothing."""
        return 0.0 if self._frozen is None else self.world.loop.time() - self._frozen_at

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _services(self, tp: TopicPartition) -> LaneServices:
        clients, stores = cast(Any, Clients(self, [(tp.topic, tp.partition)])), Stores(self)
        return LaneServices(
            clients=clients,
            group=NAMES.app_id,
            clock=self.clock,
            confirm=self._confirm,
            changelog_facts=self._changelog_facts,
            commands_ids=TopicIds(self.commands_id, self.world.loop.time),
            new_timer=self._new_timer,
            make_room=self._room.set,
            fail=self.world.fail,
            stores=stores,
            processor_waits=lambda: float(self.world.history.seed % 7 == 3),  # then firings gather
            rebuilding=cast(Any, Beside(self, clients, stores)) if FILLS_BESIDE else None,
        )

    def _new_standby(self, tp: TopicPartition) -> Standby:
        changelog = TopicPartition(NAMES.changelog(tp.topic), tp.partition)
        return Standby(tp, changelog, self._services(tp), self._state_path(tp))

    def _state_path(self, tp: TopicPartition) -> Path:
        return Path(f"{tp.topic}-{tp.partition}")

    def _new_lane(self, tp: TopicPartition) -> Lane:
        history, services = self.world.history, self._services(tp)
        is_ours = history.topics[TOPICS.index(tp.topic)]
        context = LaneContext(
            tp.topic,
            tp.partition,
            dialect_named("native") if is_ours else Foreign(),
            NAMES,
            self.world.limits,
            FiringRules(retries=0),
            KnownTopics(self),
            self.world.history.shares,
            Staging(self.world.history.stage_ahead_ms, grid_ms=1),
            self.world.new_token,
            secret=lambda: SECRET,
            memory=LaneMemory(probe=LaneProbe(self.world.new_token)),
            tenants=self.world.tenants,
            plain_paths=self.world.history.seed % 5 != 2,  # without, plain work goes the general way
            partitionings=self.partitionings if is_ours and (history.growth is not None or history.lends) else None,
            rate_post=NoPost() if history.topics == (True,) else self._post_of(tp, services),
        )
        lane = self.world.lane_type(context, services, self._state_path(tp))
        self._feeds[lane] = _Feed()
        return lane

    def _post_of(self, tp: TopicPartition, services: LaneServices) -> NodePost:
        return NodePost(self.exchange, (tp.topic, tp.partition), self.world.ledger, services.clients)

    def _new_timer(self, tick: Callable[[], None]) -> Timer:
        return DueTimer(self.clock, TICK_MS, tick)

    async def _changelog_facts(self, topic: str) -> ChangelogFacts:
        await self.reach("0.facts")
        return ChangelogFacts("id", TOMBSTONES_KEPT_MS)

    async def commands_id(self, topic: str) -> str:
        return f"id {self.world.created} of {topic}"

    async def _confirm(self, tp: TopicPartition) -> bool:
        """As `LaneConsumer.confirm`."""
        await self.reach_stubbornly("5.confirm")
        if self.lanes.get(tp) is None or not self.world.group.accepts(self):
            return False
        self.world.group.forget_fences(self)
        return True

    async def _release(self) -> None:
        """Nothing is shared."""

    # -- group and fetching -------------------------------------------------------------------------------------------

    def told(self, generation: int, partitions: set[TopicPartition], standbys: set[TopicPartition]) -> None:
        """The coordinator's answer to a rebalance."""
        self._rebalances.put_nowait((generation, partitions, standbys))

    async def _follow_group(self) -> None:
        while True:
            generation, partitions, standbys = await self._rebalances.get()
            await self.reach_stubbornly("6.assign")
            self.generation = generation
            await self.lanes.assign(partitions, standbys)

    async def _fetch(self) -> None:
        """As `LaneConsumer._drain_messages` and the agent after it."""
        while True:
            self._room.clear()
            fetched = [await self._fetch_for(lane) for lane in self.lanes]
            if not any(fetched):
                if any(self._waits(lane) for lane in self.lanes):
                    self.world.loop.call_later(POLL_S, self._room.set)
                await self._room.wait()

    def wake(self) -> None:
        """There may be something to fetch."""
        self._room.set()

    def _waits(self, lane: Lane) -> bool:
        intake = lane.intake
        return intake.is_open and (intake.needs_seek or self._feeds[lane].fetched_to != intake.next_offset)

    async def _fetch_for(self, lane: Lane) -> bool:
        """Hand on, or lose, one batch; tell whether there is reason to try again at once."""
        world, feed, intake = self.world, self._feeds[lane], lane.intake
        if not intake.is_open or world.away_for((lane.tp.topic, lane.tp.partition)):
            return False
        if feed.fetched_to != intake.next_offset and world.loop.time() - feed.handed_at > LOST_BATCH_S:
            intake.needs_seek = True
        if intake.needs_seek:
            feed.position = feed.fetched_to = intake.next_offset
            intake.needs_seek = False
        log, epoch, start = world.kafka.log((lane.tp.topic, lane.tp.partition)), intake.epoch, feed.position
        if start > log.end:
            intake.lose(start)
            return False
        end = min(log.last_stable, start + world.random.choice((1, 2, 5, 50)))
        if end <= start or intake.is_full:
            if feed.fetched_to == intake.next_offset:
                intake.reached(feed.position)
            return False
        await self.reach_stubbornly("1.fetch")
        if epoch != intake.epoch or intake.needs_seek:
            intake.needs_seek = True
            return True
        feed.position = end
        if records := log.committed(start, end):
            batch = (intake, epoch, feed.fetched_to, records)
            feed.fetched_to, feed.handed_at = records[-1].offset + 1, world.loop.time()
            chance = world.random.random()
            if chance < 0.6 and feed.arrives_at <= world.loop.time():
                self._offer(*batch)
            elif chance < 0.9:
                feed.arrives_at = max(feed.arrives_at, world.loop.time() + world.random.random() * 0.3)
                world.loop.call_at(feed.arrives_at, self._offer, *batch)
        return True

    def _offer(self, intake: Intake, epoch: int, first: int, records: list[Record]) -> None:
        intake.offer(epoch, first, cast(Any, records))
        self._room.set()

    async def reach_stubbornly(self, point: str) -> None:
        """Get there, however often the connection breaks: clients try again by themselves."""
        while True:
            try:
                await self.reach(point)
            except KafkaConnectionError:
                continue
            return
