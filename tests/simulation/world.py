"""Everything of one history while it happens, and the judgement on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from random import Random

from aiokafka import TopicPartition

from light_scheduler.engine import Limits
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.lane import Lane

from .anew import Expected, check_anew
from .disk import Disk
from .faults import Fault
from .group import SESSION_TIMEOUT_S, Group
from .history import History, Send, Verdict
from .kafka import Kafka
from .lending import Quota
from .letters import Ledger
from .log import MAX_BATCH_BYTES, Place
from .many import Many
from .model import Partition
from .moves import Moves
from .names import COMMANDS, FRAIL, NAMES, TARGET, TOPICS
from .node import TOMBSTONES_KEPT_MS, Node
from .partitionings import Facts
from .probes import send_probes, wrong_with_probes
from .rates import check_rates
from .records import Sent
from .ruled import SimulatedTenancy, Timeline
from .sending import Command
from .trouble import TOLD_S, Trouble, check_beside_away, check_others
from .violation import Violation

EPOCH_MS = 1_767_225_600_000
SETTLE_S = 40.0
"""How long (s) after everything has happened it is looked at what came of it."""

LIMITS = Limits(max_payload_bytes=1_000, max_id_bytes=100)


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
        self.kafka = Kafka(
            self.random,
            self.clock.now,
            late_markers=history.late_markers,
            dropped_markers=history.dropped_markers,
        )
        self.kafka.changed = self._wake_fetchers
        self.kafka.away_for = self.away_for
        self.kafka.known_away = self.known_away
        if history.away is not None and history.away.drops_markers:
            self.kafka.drops_from = history.away.begins + TOLD_S
        topics = TOPICS[: len(history.topics)]
        self.partitions = [TopicPartition(topic, number) for topic in topics for number in range(history.partitions)]
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
        self.ledger = Ledger(self)
        self.expected = Expected()
        self.created = 0
        """How often the commands topic was created again."""

    async def play(self) -> Verdict:
        """Let it all happen; then compare with the model."""
        await self.happen()
        if self.history.anew is not None:
            return Verdict(self._violation_anew(), frozenset(self.struck), 0, self.steps)
        many: dict[Sent, Many] = {}
        moves = None if self.history.growth is None else Moves()
        quota = Quota(self.history.changes, is_calm=self.history.is_calm) if self.history.lends else None
        models = [
            Partition(
                tp.partition,
                len(self.partitions) // len(self.history.topics),
                self.kafka.log((tp.topic, tp.partition)).committed(0, 1 << 40),
                many,
                FRAIL if self.history.trouble is not None and self.history.trouble.kind == "refuses" else None,
                Timeline(self.history.changes, EPOCH_MS),
                self.history.stage_ahead_ms,
                moves,
                quota,
                self.history.partitions,
                topic=tp.topic,
                forwards=self.history.topics[TOPICS.index(tp.topic)],
                part_at=partial(self._part_of, tp.partition),
            )
            for tp in self.partitions
        ]
        if quota is not None:
            quota.models = models
        if moves is not None:
            moves.models = models
        return Verdict(
            self._violation(models), frozenset(self.struck), sum(model.fired for model in models), self.steps
        )

    async def happen(self) -> None:
        """Let it all happen."""
        history = self.history
        for number in range(history.machines):
            self._start(f"machine {number}", Disk())
        for number, send in enumerate(history.sends):
            self.loop.call_at(send.at, self._send, send, number)
            self._lasts_until(send.at + max(0, send.wait) / 1_000)
        last = max((send.at for send in history.sends), default=0.0)
        for change in history.changes:
            self._lasts_until(change.at / 1_000)
            if change.delayed_above is not None:
                grown = history.partitions if history.growth is None else history.growth.partitions
                grown = grown if history.anew is None else max(grown, history.anew.partitions)
                self._lasts_until(
                    max(last, change.at / 1_000)
                    + len(history.topics) * len(history.sends) * grown / change.delayed_above
                )
        if history.lends and (caps := [*filter(None, (history.shares.rate, *history.shares.rates.values()))]):
            due = max((send.at + send.wait / 1_000 for send in history.sends), default=0.0)
            self._lasts_until(due + len(history.topics) * len(history.sends) * history.partitions / min(caps))
        if history.growth is not None:
            self.loop.call_at(history.growth.at, self._grow, history.growth.partitions)
            self._lasts_until(history.growth.at)
        if history.anew is not None:
            self.loop.call_at(history.anew.at, self._begin_anew)
            self._lasts_until(history.anew.at)
        for at in history.compactions:
            self.loop.call_at(at, self._compact)
            self._lasts_until(at)
        if history.trouble is not None:
            self._lasts_until(history.trouble.ends)
        if history.away is not None:
            self.loop.call_at(history.away.ends, self._wake_fetchers)
            self._lasts_until(history.away.ends)
        if history.probes:
            self.spawn(send_probes(self, history.probes))
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

    def away_for(self, place: Place) -> float:
        """Return for how long (s) a partition still takes nothing; 0: it takes what it is sent."""
        away = self.history.away
        if away is None or place != (COMMANDS, away.partition) or not away.is_so(self.loop.time()):
            return 0.0
        return away.ends - self.loop.time()

    def known_away(self, topic: str) -> frozenset[int]:
        """Return of which partitions of a topic the metadata tell that they take nothing."""
        away = self.history.away
        is_known = away is not None and topic == COMMANDS and away.is_known(self.loop.time())
        return frozenset({away.partition}) if away is not None and is_known else frozenset()

    def known_limit(self, topic: str) -> int:
        """Return the size of batches that the metadata tell of a topic."""
        anew = self.history.anew
        is_known = anew is not None and topic == COMMANDS and self.loop.time() >= anew.at + TOLD_S
        return anew.max_bytes if anew is not None and is_known else MAX_BATCH_BYTES

    def tell_of_away(self, outages: Outages) -> None:
        """Tell somebody when the metadata tell that a partition is away, and that it is back."""
        away = self.history.away
        if away is not None and away.is_told and self.loop.time() < away.ends + TOLD_S:
            places = [(COMMANDS, away.partition)]

            def is_back() -> None:
                outages.remember(places)
                outages.notify()

            self.loop.call_at(away.begins + TOLD_S, outages.remember, places)
            self.loop.call_at(away.ends + TOLD_S + 0.001, is_back)  # as the metadata are, not before

    def clock_ahead_of(self, machine: str) -> int:
        """Return by how much (ms) the clock of a machine is ahead of the brokers'."""
        clocks = self.history.clocks
        return clocks[int(machine.split()[1])] if clocks else 0

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

    def _send(self, send: Send, number: int) -> None:
        place = tuple(self.partitions[send.partition % len(self.partitions)])
        if seconds := self.away_for(place):  # its sender tries again
            self.loop.call_later(seconds, self._send, send, number)
            self._lasts_until(self.loop.time() + seconds + max(0, send.wait) / 1_000)
            return
        command = Command(send, self.clock.now() + send.wait)
        if self.history.anew is not None:
            if self.is_smaller and len(send.payload or b"") > self.history.anew.max_bytes // 2:
                return  # its sender is told that it is too large
            command.headers.append(("schedule-correlation-id", b"%d" % number))
            if not send.aborted:
                self.expected.send(number, is_for_good=self.created > 0 or not self.history.anew.partitions)
        self.kafka.send(place, [command], aborted=send.aborted)

    @property
    def is_smaller(self) -> bool:
        """Whether the commands topic takes only smaller records by now."""
        return self.history.anew is not None and self.loop.time() >= self.history.anew.at

    def _begin_anew(self) -> None:
        """Create the commands topic again, or have it take only smaller records."""
        assert self.history.anew is not None
        if not self.history.anew.partitions:
            self.kafka.max_bytes[COMMANDS] = self.history.anew.max_bytes
            return
        before = len(self.partitions)
        self.partitions[:] = [TopicPartition(COMMANDS, number) for number in range(self.history.anew.partitions)]
        self.created += 1
        self.kafka.create_again(COMMANDS, before, len(self.partitions))
        self.facts.create_again(len(self.partitions))
        self.expected.wait(self)
        self.group.rebalance()

    def _grow(self, partitions: int) -> None:
        if self.created:
            return
        self.partitions += [TopicPartition(COMMANDS, number) for number in range(len(self.partitions), partitions)]
        self.group.rebalance()

    def _compact(self) -> None:
        for tp in self.partitions:
            log = self.kafka.log((NAMES.changelog(tp.topic), tp.partition))
            log.compact(self.clock.now(), TOMBSTONES_KEPT_MS)

    # -- judgement ----------------------------------------------------------------------------------------------------

    def _violation_anew(self) -> str | None:
        if self.failure or self.group.usurped:
            return self.failure or self.group.usurped
        try:
            check_anew(self)
        except Violation as violation:
            return str(violation)
        return None

    def _violation(self, models: list[Partition]) -> str | None:
        if self.failure or self.group.usurped:
            return self.failure or self.group.usurped
        by_changelog = {
            (model.changelog, tp.partition): model for tp, model in zip(self.partitions, models, strict=True)
        }
        if self.history.probes and (wrong := wrong_with_probes(self)) is not None:
            return wrong
        try:
            for number, commit in enumerate(self.kafka.commits):
                if not (commit.records or commit.group_offsets):
                    continue  # it was for its markers
                model = next((by_changelog[place] for place in commit.places if place in by_changelog), None)
                if model is None:
                    raise Violation(f"a commit of {commit.transactional_id} changes no state")
                model.follow(number, commit, EPOCH_MS + int(commit.decided_at * 1_000) + commit.clock_ahead)
            for tp, model in zip(self.partitions, models, strict=True):
                model.finish(self.clock.now())
                offset = self.kafka.group_offsets.get(tp, 0)
                if model.commands and offset != model.commands[-1].offset + 1:
                    raise Violation(f"the group's offset is {offset} after command {model.commands[-1].offset}")
            if models and models[0].moves is not None:
                models[0].moves.finish(models, self.facts.current)
            self._check_rates(models)
            if self.history.trouble is not None:
                logs = {tp.partition: self.kafka.log((tp.topic, tp.partition)) for tp in self.partitions}
                check_others(self.kafka.commits, self.history.trouble, logs, TARGET, FRAIL, EPOCH_MS)
            if self.history.away is not None and self.history.is_calm and self.history.is_plain:
                logs = {tp.partition: self.kafka.log((tp.topic, tp.partition)) for tp in self.partitions}
                changelog = NAMES.changelog(COMMANDS)
                check_beside_away(self.kafka.commits, self.history.away, logs, changelog, TARGET, EPOCH_MS)
        except Violation as violation:
            return str(violation)
        return None

    def _part_of(self, partition: int, now: int) -> float | None:
        """Return which part of each rate a partition has at an instant; None: it was added, and schedules move."""
        held = self.facts.at(now)
        if held.former is not None and partition >= held.former and not held.is_settled:
            return None
        return 1 / held.partitions / len(self.history.topics)

    def _check_rates(self, models: list[Partition]) -> None:
        paces = {(model.topic, model.number): model.pace for model in models}
        changelogs = {model.changelog: model.topic for model in models}
        targets = frozenset((TARGET, FRAIL))
        check_rates(self.history, self.kafka.commits, paces, self.ledger, changelogs=changelogs, targets=targets)


class _Clock:
    """The time of day in the simulated world."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1_000)
