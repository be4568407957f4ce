"""How many partitions keys belong to, as each process knows it: some time after it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.model.partitioning import Partitioning

from .faults import Killed

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECRET = b"of the workers"


class Facts:
    """What holds, and how it gets to the processes."""

    def __init__(self, world: World, partitions: int) -> None:
        self.current = Partitioning(partitions, secret=SECRET)
        self._world = world
        self._held = [(0, self.current)]

    def at(self, now: int) -> Partitioning:
        """Return what held at an instant (UTC epoch ms)."""
        return next(held for since, held in reversed(self._held) if since <= now)

    def grow(self, partitions: int) -> None:
        """Use the partitions that were added, unless schedules still move to those that were added before."""
        if partitions > self.current.partitions and self.current.is_settled:
            self._now(Partitioning(partitions, self.current.partitions, secret=SECRET))

    def create_again(self, partitions: int) -> None:
        """The topic is another one. Lanes hear of it when they start."""
        self.current = Partitioning(partitions, secret=SECRET)

    def reached(self, partition: int, partitions: int, stage: Stage) -> None:
        current = self.current
        if partitions != current.partitions:
            return
        if stage is Stage.RUNNING and partition not in current.running:
            running, following = current.running | {partition}, current.following | {partition}
            self._now(replace(current, running=running, following=following))  # a topic keeps the order of the reports
        if stage is Stage.SETTLED and partition not in current.settled:
            self._now(replace(current, settled=current.settled | {partition}))

    def _now(self, partitioning: Partitioning) -> None:
        self.current = partitioning
        self._held.append((self._world.clock.now(), partitioning))
        latest = self._world.history.news_s
        for node in self._world.nodes.values():
            self._world.loop.call_later(latest * self._world.random.random() ** 2, node.partitionings.receive)


class NodePartitionings:
    """What one process knows."""

    def __init__(self, node: Node) -> None:
        self.changed: list[Callable[[], None]] = []
        self._node = node
        self._known: Partitioning | None = None
        self._topic_id = ""
        self._reporting: set[tuple[int, int, Stage]] = set()

    def of(self, topic: str) -> Partitioning | None:
        return self._known

    def receive(self) -> None:
        """Take over the current partitioning, unless the process is dead or frozen."""
        if self._node.is_dead:
            return
        if self._node.is_frozen:
            self._node.world.loop.call_later(1.0, self.receive)
            return
        self._known = self._node.world.facts.current
        for changed in list(self.changed):
            changed()

    async def refresh(self, topic: str, partition: int) -> None:
        await self._node.reach_stubbornly("0.facts")
        if partition >= self._node.world.facts.current.partitions:
            self._node.world.facts.grow(len(self._node.world.partitions))
        self._known = self._node.world.facts.current
        self._topic_id = await self._node.commands_id(topic)

    def report(self, topic: str, topic_id: str, partition: int, partitions: int, stage: Stage) -> None:
        reported = partition, partitions, stage
        if topic_id == self._topic_id and reported not in self._reporting:
            self._reporting.add(reported)
            self._node.world.spawn(self._report(topic, topic_id, reported))

    async def _report(self, topic: str, topic_id: str, reported: tuple[int, int, Stage]) -> None:
        try:
            await asyncio.sleep(self._node.world.random.random())
            await self._node.reach_stubbornly("0.facts")
        except Killed:
            return
        self._reporting.discard(reported)
        if topic_id == await self._node.commands_id(topic):
            self._node.world.facts.reached(*reported)
