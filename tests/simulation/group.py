"""The consumer group: who owns which partition, and what each member has heard of it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from aiokafka import TopicPartition

from .names import NAMES

if TYPE_CHECKING:
    from .clients import Clients
    from .node import Node

SESSION_TIMEOUT_S = 6.0
HEARTBEAT_S = 0.3


class Fence(NamedTuple):
    """Who became the owner of a transactional id, and how often it had changed hands by then."""

    node: Node
    number: int


def _of(node: Node, by_partition: dict[TopicPartition, Node]) -> set[TopicPartition]:
    return {tp for tp, member in by_partition.items() if member is node}


class Group:
    """Members, and the assignment of the latest generation.

    It also watches who fences whom: `usurped` tells of a lane that fenced the rightful owner although it had been
    fenced by this very owner before, without a heartbeat in between that was accepted.
    """

    def __init__(self, random: Random, partitions: list[TopicPartition], *, with_standbys: bool) -> None:
        self.generation = 0
        self.usurped: str | None = None
        self.owners: dict[TopicPartition, Node] = {}
        self._random = random
        self._partitions = partitions
        self._with_standbys = with_standbys
        self._members: list[Node] = []
        self._fences: dict[str, Fence] = {}
        self._superseded: dict[Clients, int] = {}  # by which fence a lane knows itself to be fenced

    def accepts(self, node: Node) -> bool:
        """Return whether a heartbeat of a node, in the generation that it knows of, is accepted."""
        return node in self._members and node.generation == self.generation

    def join(self, node: Node) -> None:
        if node.is_dead:
            return
        self._members = [member for member in self._members if member is not node and member.machine != node.machine]
        self._members.append(node)
        self.rebalance()

    def leave(self, node: Node) -> None:
        if node in self._members:
            self._members.remove(node)
            self.rebalance()

    def is_member(self, node: Node) -> bool:
        return node in self._members

    def watch(self, node: Node) -> None:
        """A node has fallen silent: unless it is heard of again, its session ends."""
        asyncio.get_running_loop().call_later(SESSION_TIMEOUT_S, self._expire, node)

    def _expire(self, node: Node) -> None:
        if node.is_dead or node.silent_for() >= SESSION_TIMEOUT_S - 0.001:
            self.leave(node)

    def rebalance(self) -> None:
        self.generation += 1
        members = self._members
        shift = self._random.randrange(2)
        self.owners = {
            tp: members[(number + shift) % len(members)] for number, tp in enumerate(self._partitions) if members
        }
        standbys = {
            tp: members[(number + shift + 1) % len(members)]
            for number, tp in enumerate(self._partitions)
            if self._with_standbys and len(members) > 1
        }
        for node in members:
            node.told(self.generation, _of(node, self.owners), _of(node, standbys))

    def watch_fence(self, lane: Clients, transactional_id: str) -> None:
        """A lane becomes the owner of a transactional id."""
        former, node = self._fences.get(transactional_id), lane.node
        owner = next(
            (owner for tp, owner in self.owners.items() if transactional_id == NAMES.transactional_id(*tp)), None
        )
        if former is not None and former.node is owner is not node and self._superseded.get(lane) == former.number:
            self.usurped = f"{node} fenced {owner}, by which it had been fenced, without being given {transactional_id}"
        self._fences[transactional_id] = Fence(node, 1 if former is None else former.number + 1)

    def watch_fenced(self, lane: Clients, transactional_id: str) -> None:
        """A lane learns that it has been fenced."""
        if (holder := self._fences.get(transactional_id)) is not None and holder.node is not lane.node:
            self._superseded[lane] = holder.number

    def forget_fences(self, node: Node) -> None:
        """A node's heartbeat was accepted: that its lanes go on is its right."""
        for lane in [lane for lane in self._superseded if lane.node is node]:
            del self._superseded[lane]
