"""Letters about rates between lanes that share no log: some are late, some get lost, and some arrive twice.

They have no part in transactions, so what lanes lend by them is noted here, for the judgement on rates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from light_scheduler.lanes.quotas.rate_exchange import Letter, Post, RateExchange
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateMessage, RateName

from .log import Place

if TYPE_CHECKING:
    from .node import Node
    from .world import World

LOST, TWICE = 0.1, 0.05
LATEST_S = 0.3


class Taken(NamedTuple):
    """Tokens (thousandths) that were on their way from an instant to another (UTC epoch ms, by the brokers' clock)."""

    name: RateName
    lent_at: int
    taken_at: int
    amount: int


class Ledger:
    """What was lent by letters in a world."""

    def __init__(self, world: World) -> None:
        self.first: defaultdict[Place, dict[object, int]] = defaultdict(dict)
        """Place -> lane -> when it lent for the first time."""
        self.taken: list[Taken] = []
        self._now = world.clock.now
        self._open: dict[tuple[Place, Place, RateGrant], int] = {}

    def lent(self, lane: object, sender: Place, to: Place, grant: RateGrant) -> None:
        now = self._now()
        self.first[sender].setdefault(lane, now)
        self._open[to, sender, grant] = now

    def took(self, to: Place, sender: Place, grant: RateGrant) -> None:
        if (lent_at := self._open.pop((to, sender, grant), None)) is not None:
            self.taken.append(Taken(grant.name, lent_at, self._now(), grant.amount))


class NodePost(Post):
    """As real lanes have it; `lane` tells whose it is in commits."""

    def __init__(self, exchange: RateExchange, place: Place, ledger: Ledger, lane: object) -> None:
        super().__init__(exchange, place)
        self._ledger = ledger
        self._lane = lane

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        if isinstance(said, RateGrant):
            self._ledger.lent(self._lane, self.place, to, said)
        super().send(to, said)

    def received(self) -> list[RateMessage]:
        messages = super().received()
        for message in messages:
            if isinstance(message.said, RateGrant):
                self._ledger.took(self.place, message.sender, message.said)
        return messages


class NodeOwners:
    """Who has which partitions, as a process has heard."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._assignment: object = None
        self._owners: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))

    @property
    def own_url(self) -> str:
        return self._node.machine

    def owners(self) -> Mapping[str, Mapping[str, list[int]]]:
        assignment = self._node.world.group.owners
        if assignment is not self._assignment:
            self._assignment = assignment
            self._owners = defaultdict(lambda: defaultdict(list))
            for tp, node in assignment.items():
                self._owners[node.machine][tp.topic].append(tp.partition)
        return self._owners


async def carry(node: Node) -> None:
    """Bring what a process has for others, as `RateCourier` does."""
    world = node.world
    while True:
        for machine in await node.exchange.addressees():
            for letter in node.exchange.take(machine, 1_000):
                chance = world.random.random()
                times = 0 if chance < LOST else 2 if chance < LOST + TWICE else 1
                for _ in range(times):
                    world.loop.call_later(LATEST_S * world.random.random() ** 2, _arrive, world, machine, letter)


def _arrive(world: World, machine: str, letter: Letter) -> None:
    node = world.nodes.get(machine)
    if node is not None and not node.is_dead and not node.is_frozen:
        node.exchange.deliver(letter)
