"""A worker process: real lanes, and what a machine does to them.

Everything that a lane does outside of its own memory passes `reach`. There a fault can strike: before a request has any
effect, or after it, when the answer is not known yet.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from support.counting import miscounted

from light_scheduler.agents import DueTimer
from light_scheduler.clock import Clock
from light_scheduler.engine import FiringRules
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.kafka.targets import Targets, TargetTopic
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.kafka.trials import Trials
from light_scheduler.lanes.assigned_lanes import Lanes
from light_scheduler.lanes.context import LaneContext
from light_scheduler.lanes.intake import Intake
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.probe import LaneProbe
from light_scheduler.lanes.rate_exchange import RateExchange
from light_scheduler.lanes.rate_post import NoPost
from light_scheduler.lanes.staging import Staging
from light_scheduler.model import TopicNames
from light_scheduler.model.place import Place
from light_scheduler.tables import MemoryStore, layout
from light_scheduler.tables.counts import CHANGES, GROUPS
from light_scheduler.tables.services import LaneServices, Timer
from light_scheduler.tables.standby import Standby
from light_scheduler.tables.usable_copy import ChangelogFacts
from light_scheduler.wire import dialect_named
from light_scheduler.wire.native import NativeDialect

from .beside import Beside
from .kafka import INTERNAL, MAX_BATCH_BYTES, Clients, Killed, Record
from .letters import NodeOwners, NodePost, carry
from .placements import NodePlacements
from .probes import SECRET

if TYPE_CHECKING:
    from .world import World

NAMES = TopicNames("app")
COMMANDS = NAMES.commands
TOPICS = (COMMANDS, "other-commands", "third-commands")
"""Commands topics; most histories have the first only."""
TARGET = "targets"
FRAIL = "frail"
"""Another target: the one that is in trouble in histories of that kind."""
TARGET_PARTITIONS = 2
REPLIES = "replies"
EXISTING = {TARGET, FRAIL, REPLIES, *TOPICS, *map(NAMES.changelog, TOPICS)}
EXISTING |= {NAMES.history, NAMES.dead_letters, *INTERNAL}
TICK_MS = 20_000
TOMBSTONES_KEPT_MS = 30_000
FLUSH_S = 10.0
"""As `rocks.FLUSH_S`, for a world in which everything is soon over."""

FILLS_BESIDE = False
"""Whether processes of their own fill lost tables (see `beside`)."""

LOST_BATCH_S = 1.0
COUNTED = {layout.INDEX_START, layout.DEFINITION, GROUPS, CHANGES}
"""What keys begin with of what is counted, and of the counts."""
POLL_S = 0.05


class Foreign(NativeDialect):
    """Commands of a topic that workers do not write to."""

    forwards = False


class Fault(NamedTuple):
    """What strikes, and for how long (s) it lasts or how long the process stays away."""

    kind: str
    seconds: float


KINDS = ("kill", "power", "wipe", "freeze", "lose", "stall", "outage", "rebalance", "stop")
"""kill: SIGKILL, restarted on the same disk, without some of what was not flushed. power: without any of that.
wipe: without the disk. freeze: SIGSTOP and SIGCONT. lose: this one request, or its answer, is. stall: it takes long.
outage: all do. rebalance: partitions change hands. stop: the worker leaves in order and comes back."""


class Disk:
    """The stores of a machine, by path; they outlive processes."""

    def __init__(self) -> None:
        self._writes: dict[Path, list[Any]] = {}
        self._flushed: dict[Path, int] = {}  # how many writes
        self._files: dict[Path, set[int]] = {}  # writes that were files at once, whatever becomes of those before
        self.stores: dict[Path, MemoryStore] = {}

    def wipe(self) -> None:
        self._writes.clear()
        self._flushed.clear()
        self._files.clear()
        self.stores.clear()

    def lose_unflushed(self, random: Random, *, all_of_it: bool) -> None:
        """What a process has not flushed is lost when it ends; or only the end of it is, as memory gets full."""
        for path, writes in self._writes.items():
            flushed = self._flushed.get(path, 0)
            kept = flushed if all_of_it else random.randint(flushed, len(writes))
            if kept < len(writes):
                files = self._files.pop(path, set())
                writes[kept:] = [writes[at] for at in range(kept, len(writes)) if at in files]
                self._read_again(path)
            self._flushed[path] = len(writes)

    def write(self, path: Path, changes: Any) -> None:
        self._writes.setdefault(path, []).append(changes)
        self.stores[path].write(changes)

    def take_in(self, path: Path, rows: Any) -> None:
        """Write what is a file already."""
        self._files.setdefault(path, set()).add(len(self._writes.get(path, ())))
        self.write(path, rows)

    def flush(self, path: Path) -> None:
        self._flushed[path] = len(self._writes.get(path, ()))

    def destroy(self, path: Path) -> None:
        for kept in (self.stores, self._writes, self._flushed, self._files):
            kept.pop(path, None)

    def _read_again(self, path: Path) -> None:
        store = self.stores[path] = MemoryStore()
        for changes in self._writes[path]:
            store.write(changes)


@dataclass(frozen=True)
class Stores:
    """What lanes open their stores with."""

    node: Node

    def __call__(self, path: Path) -> Store:
        self.node.reach_at_once("0.open")
        memory = self.node.disk.stores.setdefault(path, MemoryStore())
        self.node.check_counts(memory)
        return Store(self.node, path, memory)

    def destroy(self, path: Path) -> None:
        self.node.disk.destroy(path)


class Store:
    """A store on a machine's disk."""

    def __init__(self, node: Node, path: Path, memory: MemoryStore) -> None:
        self._node = node
        self._path = path
        self._is_loading = memory.get(layout.CHECKPOINT_KEY) is None
        self._flushed_at = node.world.loop.time()
        self.get = memory.get
        self.get_many = memory.get_many
        self.scan: Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]] = memory.scan

    def write(self, changes: Any) -> None:
        if layout.CHECKPOINT_KEY in changes:
            self._apply(changes)
        else:  # the table is being filled
            self._is_loading = True
            self._node.reach_at_once("0.load")
            self._node.disk.write(self._path, changes)
        if self._node.world.loop.time() - self._flushed_at > FLUSH_S:
            self._flushed_at = self._node.world.loop.time()
            self._node.disk.flush(self._path)

    def load(self, families: Any) -> Iterator[None]:
        yield
        self._is_loading = True
        self._node.reach_at_once("0.load")
        self._node.disk.take_in(self._path, {key: value for rows in families for key, value in rows.items()})

    def _apply(self, changes: Any) -> None:
        self._node.reach_at_once("4.write begun")
        self._node.disk.write(self._path, changes)
        if self._is_loading or any(key[:1] in COUNTED for key in changes):  # else they are as they were
            self._is_loading = False
            self._node.check_counts(self._node.disk.stores[self._path])
        self._node.reach_at_once("4.write done")

    async def settle(self) -> None:
        """A disk of a simulation is always in order."""

    async def flush(self) -> None:
        await self._node.reach("0.flush")
        self._node.disk.flush(self._path)

    def close(self) -> None:
        """The disk keeps it, unless the process has ended before."""
        if not self._node.is_dead:
            self._node.disk.flush(self._path)


PROBE_S = 0.5


class KnownTopics:
    """What the lanes know of topics, as far as they have asked."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._asked: set[str] = set()
        self._denied: dict[str, tuple[str, float]] = {}
        self.outages = Outages(asyncio.get_running_loop().time)
        self.trials = Trials(self.outages)

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        """The metadata explain nothing, if there is anybody to ask; but where answers go is never at fault here.

        They do not wait for a topic that does not answer, and who judges by commits cannot tell why one is missing.
        """
        with contextlib.suppress(BrokerError):
            await self.resolve(set())
            topics = {topic for topic, _ in places} - {REPLIES}
            self._open(((topic, number) for topic in topics for number in range(TARGET_PARTITIONS)), reason)

    def doubt(self, topics: Iterable[str]) -> None:
        """The metadata never tell of a fault."""

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        """As `suspect`, without asking anybody."""
        self._open([place], reason, times)

    def _open(self, places: Iterable[Place], reason: str, times: int | None = None) -> None:
        self.outages.suspect(places, reason, self._node.world.kafka.now_ms(), times)
        asyncio.get_running_loop().call_later(PROBE_S, self._probe)

    def _probe(self) -> None:
        """Find out what answers by now."""
        for place in self.outages.to_probe():
            trouble = self._node.world.trouble_of(place)
            self.outages.probed(place, answered=trouble is None or trouble.kind == "refuses")
        if self.outages:
            asyncio.get_running_loop().call_later(PROBE_S, self._probe)

    def __getitem__(self, topic: str) -> TargetTopic:
        if topic not in self._asked:
            raise KeyError(topic)
        if topic not in EXISTING:
            return TargetTopic(0, 0, f"topic {topic} does not exist", 0.0)
        if topic in self._denied:
            refusal, until = self._denied[topic]
            if self._node.world.loop.time() < until:
                return TargetTopic(0, 0, refusal, 0.0)
        if topic in TOPICS:
            return _existing(sum(tp.topic == topic for tp in self._node.world.partitions))
        return _existing(TARGET_PARTITIONS if topic in (TARGET, FRAIL) else 1)

    async def resolve(self, topics: set[str]) -> None:
        try:
            await self._node.reach("1.resolve")
        except KafkaConnectionError as error:
            raise BrokerError("nobody answers") from error
        self._asked |= topics

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        self._denied[topic] = refusal, self._node.world.loop.time() + seconds

    def forget_all(self) -> None:
        """Nothing changes."""

    def forget(self, topics: set[str]) -> None:
        """Nothing changes."""

    async def close(self) -> None:
        """There are no connections."""


@cache
def _existing(partitions: int) -> TargetTopic:
    return TargetTopic(partitions, MAX_BATCH_BYTES, None, 0.0)


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
        self.placements = NodePlacements(self)
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
            commands_ids=TopicIds(self._commands_id, self.world.loop.time),
            new_timer=self._new_timer,
            make_room=self._room.set,
            fail=self.world.fail,
            stores=stores,
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
            cast(Targets, KnownTopics(self)),
            self.world.history.shares,
            Staging(self.world.history.stage_ahead_ms, grid_ms=1),
            self.world.new_token,
            secret=lambda: SECRET,
            probe=LaneProbe(self.world.new_token),
            tenants=self.world.tenants,
            short_ways=self.world.history.seed % 5 != 2,  # without, plain work goes the general way
            placements=self.placements if is_ours and (history.growth is not None or history.lends) else None,
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

    async def _commands_id(self, topic: str) -> str:
        return f"id of {topic}"

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
        if not intake.is_open:
            return False
        if feed.fetched_to != intake.next_offset and world.loop.time() - feed.handed_at > LOST_BATCH_S:
            intake.needs_seek = True
        if intake.needs_seek:
            feed.position = feed.fetched_to = intake.next_offset
            intake.needs_seek = False
        log, epoch, start = world.kafka.log((lane.tp.topic, lane.tp.partition)), intake.epoch, feed.position
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
