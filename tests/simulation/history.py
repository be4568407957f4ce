"""Histories: what is sent and what goes wrong, when; drawn from a seed, played, and made smaller if they fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import NamedTuple
from unittest.mock import patch

from aiokafka import TopicPartition

from light_scheduler.engine import Limits
from light_scheduler.lanes import handover
from light_scheduler.lanes import work as work_module
from light_scheduler.lanes.budget import Budget
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.pace import MOST
from light_scheduler.model import EQUAL_SHARES, OTHERS, Shares
from light_scheduler.tables import counts as counts_module
from light_scheduler.tables import standby as standby_module
from light_scheduler.wire import partition_for
from light_scheduler.wire.relay import BULK_COUNT

from . import loop as simulated
from .group import SESSION_TIMEOUT_S, Group
from .kafka import POISON, Kafka, Place
from .model import Many, Moves, Partition, Sent
from .node import COMMANDS, FRAIL, KINDS, NAMES, REPLIES, TARGET, TOMBSTONES_KEPT_MS, Disk, Fault, Node
from .placements import Facts
from .ruled import TENANTS as RULED_TENANTS
from .ruled import Change, SimulatedTenancy, Timeline, draw_changes
from .trouble import Trouble, check_others, draw_trouble_of
from .violation import Violation

EPOCH_MS = 1_767_225_600_000
SETTLE_S = 40.0
"""How long (s) after everything has happened it is looked at what came of it."""

LIMITS = Limits(max_payload_bytes=1_000, max_id_bytes=100)

TENANTS = {"a": "default", "b": "default", "c": "acme", "d": "zeta"}
"""Whose schedule it is, by id."""

IDS = tuple(TENANTS)

SHARES = (
    EQUAL_SHARES,
    EQUAL_SHARES,
    Shares({"acme": 5}, rate=2),
    Shares(rates={"default": 0.5, "zeta": 40}),
    Shares(rate=1, rates={OTHERS: 1}),
)
SELECTIONS = {"*": "default", "a*": "default", "c*": "acme"}
"""Ids of bulk commands, and their tenants."""

GROWN_IDS = tuple("abcdefghij")
"""Of schedules in histories in which the commands topic grows."""

SCHEDULES = ("schedule", "keep", "fail", "invalid")
COMMAND_KINDS = (*SCHEDULES, "cancel", "pause", "resume", "cancel-many", "pause-many", "resume-many")


class Send(NamedTuple):
    """A command: sent `at` (s), due `wait` ms later. `aborted` is None unless it is sent in a transaction."""

    at: float
    partition: int
    kind: str
    id: str
    wait: int
    payload: bytes | None
    aborted: bool | None
    target: str = TARGET


class Growth(NamedTuple):
    """When (s) the commands topic gets more partitions, and how many it has then."""

    at: float
    partitions: int


@dataclass(frozen=True)
class History:
    """One run. `faults` strike when a process reaches a point outside of itself for the n-th time, over all processes;
    `compactions` are times (s). `seed` decides what is left open: delays, and sizes of fetches."""

    seed: int
    machines: int
    partitions: int
    sends: tuple[Send, ...]
    faults: tuple[tuple[int, Fault], ...]
    compactions: tuple[float, ...]
    most: int = MOST
    """Commands, and firings, that a cycle may hold."""
    shares: Shares = EQUAL_SHARES
    stage_ahead_ms: int = 0
    """So long before they are due firings are prepared."""
    trouble: Trouble | None = None
    """What the target `FRAIL` does."""
    changes: tuple[Change, ...] = ()
    """Of the rules of tenants."""
    late_markers: float = 0.0
    """In how many transactions some partitions get the marker seconds after the others."""
    growth: Growth | None = None


class Verdict(NamedTuple):
    """What came of a history: what was wrong, where which faults struck, and how much was delivered."""

    violation: str | None
    struck: frozenset[tuple[str, str]]
    fired: int
    steps: int


def draw(seed: int) -> History:
    """Make a history up."""
    random = Random(seed)
    partitions = 1 if random.random() < 0.6 else 2
    sends = []
    at = 0.0
    for _ in range(random.randint(1, 9)):
        at += random.choice((0.0, 0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(COMMAND_KINDS, (14, 3, 1, 1, 1, 1, 1, 2, 1, 1))[0]
        id = random.choice(("*", "*", "a*", "c*")) if kind.endswith("-many") else random.choice(IDS)
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.2:  # a producer with another partitioner
            partition = random.randrange(partitions)
        payload = POISON if random.random() < 0.06 else random.choice((b"", b"x", b"\x00\xff" * 20, None))
        if kind not in SCHEDULES:
            payload = None
        sends.append(
            Send(
                at,
                partition,
                kind,
                id,
                random.choice((-500, 0, 50, 300, 1_000, 3_000, 8_000)),
                payload,
                random.choice((None, None, None, None, False, True)),
            )
        )
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 4), (1, 6, 5, 3, 1))[0]):
        kind = random.choices(KINDS, (8, 3, 2, 5, 6, 4, 2, 3, 2))[0]
        longest = {"stall": 12.0, "outage": 12.0}.get(kind, random.choice((1.0, 9.0, 9.0, 20.0, 60.0)))
        faults.append((random.randint(1, random.choice((30, 80, 160))), Fault(kind, random.random() * longest)))
    cleanings = [random.random() * 60 for _ in range(random.choice((0, 0, 1, 3)))]
    compactions = tuple(at + later for at in cleanings for later in (0.0, TOMBSTONES_KEPT_MS / 1_000 + 1.0))
    machines, most, shares = random.choice((1, 2, 2)), random.choice((MOST, MOST, 1, 2)), random.choice(SHARES)
    stage_ahead_ms = random.choice((0, 40, 400))
    faults.sort()
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(faults),
        compactions,
        most,
        shares,
        stage_ahead_ms,
        late_markers=0.2 if seed % 4 == 1 else 0.0,
    )


def draw_frozen_standby(seed: int) -> History:
    """Make a history up in which one that stands by, or is about to, is away for longer than tombstones are kept."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    freeze = Fault("freeze", TOMBSTONES_KEPT_MS / 1_000 + fires_at + random.random() * 10)
    frozen_at = random.randint(25, 60)
    compactions = (fires_at + 0.5, fires_at + TOMBSTONES_KEPT_MS / 1_000 + 1)
    return History(3 * seed, 2, 1, sends, ((frozen_at, freeze),), compactions)


def draw_frozen_owner(seed: int) -> History:
    """Make a history up in which an owner is away for longer than tombstones are kept, and then gets its lane back."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    kept_s = TOMBSTONES_KEPT_MS / 1_000
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    frozen_at = random.randint(20, 50)
    freeze = (frozen_at, Fault("freeze", kept_s + fires_at + SESSION_TIMEOUT_S + random.random() * 10))
    kill = (frozen_at + random.randint(60, 250), Fault("kill", 60.0))  # of whoever has the lane then
    taken_over_at = fires_at + 1.5 * SESSION_TIMEOUT_S
    compactions = (taken_over_at, taken_over_at + kept_s + 1)
    # Only seeds that are multiples of 3 have standbys.
    return History(3 * seed + 1, 2, 1, sends, (freeze, kill), compactions)


def draw_doubt(seed: int) -> History:
    """Make a history up in which commits and owners are in doubt: answers are lost, lanes move, markers are late."""
    random = Random(seed)
    sends = tuple(
        Send(0.3 * number, 0, "schedule", random.choice(IDS), random.choice((0, 300, 1_000)), b"x", None)
        for number in range(random.randint(6, 12))
    )
    kinds = random.choice((("lose",), ("lose", "rebalance", "stop"), ("rebalance", "stop", "kill", "stall")))
    faults = tuple(
        (step, Fault(random.choice(kinds), 3 * random.random())) for step in sorted(random.sample(range(30, 300), 12))
    )
    return History(seed, random.choice((1, 2, 2)), 1, sends, faults, (), late_markers=0.6)


def draw_trouble(seed: int) -> History:
    """Make a history up in which nothing goes wrong but a target."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.5
    for number in range(random.randint(4, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        target = random.choice((TARGET, FRAIL))
        id = f"{target}-{number}"
        home = partition_for(id.encode(), partitions)
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        sends.append(Send(at, home, "schedule", id, wait, random.choice((b"", b"x", None)), None, target))
        if random.random() < 0.15:
            sends.append(Send(at + 5 * random.random(), home, "cancel", id, 0, None, None, target))
    return History(
        seed,
        1,
        partitions,
        tuple(sorted(sends, key=lambda send: send.at)),
        (),
        (),
        random.choice((MOST, MOST, 2)),
        stage_ahead_ms=random.choice((0, 40)),
        trouble=draw_trouble_of(random),
    )


def draw_tenants(seed: int) -> History:
    """Make a history up in which the rules of tenants change."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.0
    for _ in range(random.randint(3, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "keep", "cancel", "pause", "resume", "pause-many"), (14, 2, 2, 1, 1, 1))[0]
        id = "*" if kind.endswith("-many") else random.choice((*IDS, *RULED_TENANTS))
        payload = random.choice((b"", b"x", b"xyz", None)) if kind in SCHEDULES else None
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        target = random.choice((TARGET, TARGET, TARGET, ""))
        sends.append(Send(at, partition_for(id.encode(), partitions), kind, id, wait, payload, None, target))
    kinds = ("kill", "lose", "rebalance", "stop")
    struck = sorted(random.sample(range(20, 200), random.choice((0, 1, 3))))
    faults = tuple((step, Fault(random.choice(kinds), 3 * random.random())) for step in struck)
    return History(
        seed,
        random.choice((1, 2)),
        partitions,
        tuple(sends),
        faults,
        (),
        random.choice((MOST, 1, 2)),
        stage_ahead_ms=random.choice((0, 40, 400)),
        changes=draw_changes(random, TARGET),
    )


def draw_growth(seed: int) -> History:
    """Make a history up in which the commands topic gets more partitions, while commands come and much goes wrong.

    In every third the commands are delayed besides.
    """
    random = Random(seed)
    partitions, grown = random.choice(((1, 2), (1, 3), (2, 4), (2, 3), (2, 6)))
    growth = Growth(1.0 + 5 * random.random(), grown)
    sends, at = [], 0.0
    for _ in range(random.randint(8, 28)):
        at += random.choice((0.0, 0.05, 0.3, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "cancel", "pause", "resume", "keep", "fail"), (12, 6, 1, 2, 1, 1))[0]
        id = random.choice(GROWN_IDS)
        now = grown if at > growth.at else partitions
        known = partitions if random.random() < 0.2 else now  # a producer that has not heard of it
        partition = random.randrange(now) if random.random() < 0.1 else partition_for(id.encode(), known)
        wait = random.choice((0, 300, 1_000, 8_000, 15_000, 20_000))
        payload = random.choice((b"", b"x")) if kind in SCHEDULES else None
        sends.append(Send(at, partition, kind, id, wait, payload, random.choice((None, None, None, False, True))))
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 5), (2, 4, 4, 3, 2))[0]):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    most, stage_ahead_ms = random.choice((MOST, 1, 2)), random.choice((0, 0, 400))
    machines, late_markers = random.choice((1, 2, 2)), 0.2 if seed % 4 == 1 else 0.0
    changes: tuple[Change, ...] = ()
    if seed % 3 == 0:
        changes = (Change(random.choice((0, 3_000)), "default", delayed_above=random.choice((2.0, 6.0, 20.0))),)
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(sorted(faults)),
        (),
        most,
        stage_ahead_ms=stage_ahead_ms,
        late_markers=late_markers,
        changes=changes,
        growth=growth,
    )


class World:
    """Everything of one history while it is played."""

    def __init__(
        self, history: History, lane_type: type[Lane] = Lane, limits: Limits = LIMITS, settle_s: float = SETTLE_S
    ) -> None:
        self.limits = limits
        self.settle_s = settle_s
        self.loop = asyncio.get_running_loop()
        self.random = Random(history.seed)
        self.history = history
        self.lane_type = lane_type
        self.clock = _Clock(self.loop)
        self.tenants = SimulatedTenancy(history.changes, EPOCH_MS, self.clock.now)
        self.kafka = Kafka(self.random, self.clock.now, late_markers=history.late_markers)
        self.kafka.changed = self._wake_fetchers
        self.partitions = [TopicPartition(COMMANDS, number) for number in range(history.partitions)]
        self.group = Group(self.random, self.partitions, with_standbys=history.seed % 3 == 0)
        self.outage_until = 0.0
        self.steps = 0
        self.struck: set[tuple[str, str]] = set()
        self.trace: Callable[[str], None] | None = None
        self.busy_until = 0.0
        self._faults = dict(history.faults)
        self._tasks: set[asyncio.Task[None]] = set()
        self.nodes: dict[str, Node] = {}
        self.failure: str | None = None
        self._tokens = count(1)
        self.facts = Facts(self, history.partitions)

    async def play(self) -> Verdict:
        """Let it all happen; then compare with the model."""
        await self.happen()
        many: dict[Sent, Many] = {}
        moves = None if self.history.growth is None else Moves()
        models = [
            Partition(
                tp.partition,
                len(self.partitions),
                self.kafka.log((tp.topic, tp.partition)).committed(0, 1 << 40),
                many,
                FRAIL if self.history.trouble is not None and self.history.trouble.kind == "refuses" else None,
                Timeline(self.history.changes, EPOCH_MS),
                self.history.stage_ahead_ms,
                moves,
            )
            for tp in self.partitions
        ]
        return Verdict(
            self._violation(models), frozenset(self.struck), sum(model.fired for model in models), self.steps
        )

    async def happen(self) -> None:
        """Let it all happen."""
        history = self.history
        for number in range(history.machines):
            self._start(f"machine {number}", Disk())
        for send in history.sends:
            self.loop.call_at(send.at, self._send, send)
            self._lasts_until(send.at + max(0, send.wait) / 1_000)
        last = max((send.at for send in history.sends), default=0.0)
        for change in history.changes:
            self._lasts_until(change.at / 1_000)
            if change.delayed_above is not None:
                grown = history.partitions if history.growth is None else history.growth.partitions
                self._lasts_until(max(last, change.at / 1_000) + len(history.sends) * grown / change.delayed_above)
        if history.growth is not None:
            self.loop.call_at(history.growth.at, self._grow, history.growth.partitions)
            self._lasts_until(history.growth.at)
        for at in history.compactions:
            self.loop.call_at(at, self._compact)
            self._lasts_until(at)
        if history.trouble is not None:
            self._lasts_until(history.trouble.ends)
        while (rest := self.busy_until + self.settle_s - self.loop.time()) > 0:
            await asyncio.sleep(rest)

    # -- what nodes tell and ask --------------------------------------------------------------------------------------

    def strike(self, node: Node, point: str) -> Fault | None:
        """Count a point reached; return the fault that strikes there."""
        self.steps += 1
        fault = self._faults.get(self.steps)
        if self.trace is not None:
            self.trace(f"{self.loop.time():8.3f} {self.steps:4} {node} {point} {fault or ''}")
        if fault is not None:
            self.struck.add((fault.kind, point))
            self._lasts_until(self.loop.time() + fault.seconds + SESSION_TIMEOUT_S)
        return fault

    def trouble_of(self, place: Place) -> Trouble | None:
        """Return what is wrong with a partition just now, if anything is."""
        trouble = self.history.trouble
        if trouble is None or place[0] != FRAIL or place[1] not in trouble.partitions:
            return None
        return trouble if trouble.begins <= self.loop.time() < trouble.ends else None

    def new_token(self) -> str:
        """Make a token that no other lane has made, the same in every run of a history."""
        return f"{next(self._tokens):032x}"

    def start_later(self, machine: str, disk: Disk, seconds: float) -> None:
        self._lasts_until(self.loop.time() + seconds)
        self.loop.call_later(seconds, self._start, machine, disk)

    def thaw_later(self, node: Node, seconds: float) -> None:
        self.loop.call_later(seconds, node.thaw)

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def fail(self, error: BaseException) -> None:
        """A lane gave up for good."""
        self.failure = f"a lane gave up: {error!r}"

    # -- events -------------------------------------------------------------------------------------------------------

    def _start(self, machine: str, disk: Disk) -> None:
        self.nodes[machine] = Node(self, machine, disk)

    def _wake_fetchers(self) -> None:
        for node in self.nodes.values():
            node.wake()

    def _lasts_until(self, at: float) -> None:
        self.busy_until = max(self.busy_until, at)

    def _send(self, send: Send) -> None:
        due = self.clock.now() + send.wait
        self.kafka.send((COMMANDS, send.partition), [_Command(send, due)], aborted=send.aborted)

    def _grow(self, partitions: int) -> None:
        self.partitions += [TopicPartition(COMMANDS, number) for number in range(len(self.partitions), partitions)]
        self.group.rebalance()

    def _compact(self) -> None:
        for tp in self.partitions:
            log = self.kafka.log((NAMES.changelog(COMMANDS), tp.partition))
            log.compact(self.clock.now(), TOMBSTONES_KEPT_MS)

    # -- judgement ----------------------------------------------------------------------------------------------------

    def _violation(self, models: list[Partition]) -> str | None:
        if self.failure or self.group.usurped:
            return self.failure or self.group.usurped
        changelog = NAMES.changelog(COMMANDS)
        try:
            for number, commit in enumerate(self.kafka.commits):
                if not (commit.records or commit.group_offsets):
                    continue  # it was for its markers
                partition = next((place[1] for place in commit.places if place[0] == changelog), None)
                if partition is None:
                    raise Violation(f"a commit of {commit.transactional_id} changes no state")
                now = EPOCH_MS + int(commit.decided_at * 1_000)
                models[partition].follow(number, commit, now)
            for tp, model in zip(self.partitions, models, strict=True):
                model.finish(self.clock.now())
                offset = self.kafka.group_offsets.get(tp, 0)
                if model.commands and offset != model.commands[-1].offset + 1:
                    raise Violation(f"the group's offset is {offset} after command {model.commands[-1].offset}")
            if models and models[0].moves is not None:
                models[0].moves.finish(models, self.facts.current)
            if self.history.trouble is not None:
                logs = {tp.partition: self.kafka.log((tp.topic, tp.partition)) for tp in self.partitions}
                check_others(self.kafka.commits, self.history.trouble, logs, TARGET, FRAIL, EPOCH_MS)
        except Violation as violation:
            return str(violation)
        return None


class _Clock:
    """The time of day in the simulated world."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1_000)


class _Command:
    """A record to be sent. The headers `kind` and `due` tell the model; to the scheduler they are the user's."""

    def __init__(self, send: Send, due: int) -> None:
        self.key = send.id.encode()
        self.value = send.payload
        self.headers = [
            ("kind", send.kind.encode()),
            ("due", b"%d" % due),
            ("schedule-reply-topic", REPLIES.encode()),
            ("schedule-tenant", {**TENANTS, **RULED_TENANTS, **SELECTIONS}.get(send.id, "default").encode()),
            ("schedule-command", b"schedule" if send.kind in SCHEDULES else send.kind.removesuffix("-many").encode()),
        ]
        if send.kind.endswith("-many"):
            self.headers.append(("schedule-id", send.id.encode()))
        if send.kind in SCHEDULES:
            if send.target:
                self.headers.append(("schedule-target-topic", send.target.encode()))
            if send.wait >= 0 and send.wait % 100:
                self.headers.append(("schedule-after", b"%d" % send.wait))
            else:
                self.headers.append(("schedule-at", b"%d" % due))
        if send.kind in ("keep", "fail"):
            self.headers.append(("schedule-on-conflict", send.kind.encode()))
        if send.kind == "invalid":  # one in two pretends to be a count of another partition
            is_forged = send.id in "ab"
            forged = (BULK_COUNT, b"%d:%d:7:" % (due % 4, 1 - send.partition) + b"0" * 32)
            self.headers.append(forged if is_forged else ("schedule-ta", b"?"))


Mutation = Callable[[], AbstractContextManager[type[Lane]]]
"""Plants a bug for as long as its context lasts; the lanes are then of this type."""


def unchanged() -> AbstractContextManager[type[Lane]]:
    """Plant nothing."""
    return nullcontext(Lane)


def play(history: History, mutation: Mutation = unchanged, trace: Callable[[str], None] | None = None) -> Verdict:
    """Play a history, with a bug planted or without."""

    async def main(lane_type: type[Lane]) -> Verdict:
        world = World(history, lane_type)
        world.trace = trace
        return await world.play()

    most = Budget.most
    logging.disable(logging.CRITICAL)
    try:
        with (
            patch.object(work_module, "MAX_BULK", 1),
            patch.multiple(handover, MOST_SEEN=2, MOST_MOVED=1),
            patch.object(counts_module, "FANOUT", 3),
            patch.multiple(standby_module, CHECKPOINT_MS=5_000, POLL_MS=1_000),
            patch.object(work_module, "CHECKPOINT_MS", 15_000),
            patch.object(Budget, "most", lambda budget, table: min(history.most, most(budget, table))),
            mutation() as lane_type,
        ):
            return simulated.run(main(lane_type))
    finally:
        logging.disable(logging.NOTSET)


def shrunk(history: History, mutation: Mutation = unchanged) -> History:
    """Leave out of a failing history what it fails without."""
    smaller = next((h for h in _smaller(history) if play(h, mutation).violation is not None), None)
    return history if smaller is None else shrunk(smaller, mutation)


def _smaller(history: History) -> Iterator[History]:
    for number in range(len(history.faults)):
        yield replace(history, faults=history.faults[:number] + history.faults[number + 1 :])
    for number in range(len(history.sends)):
        yield replace(history, sends=history.sends[:number] + history.sends[number + 1 :])
    if history.trouble is not None:
        yield replace(history, trouble=None)
    for number in range(len(history.changes)):
        yield replace(history, changes=history.changes[:number] + history.changes[number + 1 :])
    if history.late_markers:
        yield replace(history, late_markers=0.0)
    for number in range(len(history.compactions)):
        yield replace(history, compactions=history.compactions[:number] + history.compactions[number + 1 :])
