"""What the lanes of a process know of topics, and which of these do not answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Set
from functools import cache
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaConnectionError

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.half_open import Trials
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.model.place import Place

from .log import MAX_BATCH_BYTES
from .names import EXISTING, FRAIL, NAMES, REPLIES, TARGET, TARGET_PARTITIONS, TOPICS

if TYPE_CHECKING:
    from .node import Node


PROBE_S = 0.5

_CHANGELOGS = {NAMES.changelog(topic): topic for topic in TOPICS}
"""Their commands topics, which have as many partitions."""


class KnownTopics:
    """What the lanes know of topics, as far as they have asked."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._asked: set[str] = set()
        self._denied: dict[str, tuple[str, float]] = {}
        self.outages = Outages(asyncio.get_running_loop().time)
        self.trials = Trials(self.outages)
        node.world.tell_of_away(self.outages)

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        """The metadata explain nothing, if there is anybody to ask; but where answers go is never at fault here.

        They do not wait for a topic that does not answer, and who judges by commits cannot tell why one is missing.
        """
        with contextlib.suppress(BrokerError):
            await self.resolve(set())
            topics = {topic for topic, _ in places} - {REPLIES, *TOPICS}
            ours = [place for place in places if place[0] in TOPICS]
            self._open([*ours, *((topic, number) for topic in topics for number in range(TARGET_PARTITIONS))], reason)

    def doubt(self, topics: Iterable[str]) -> None:
        """The metadata tell of the faults that there are, whether they are asked or not."""

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
            is_there = not self._node.world.away_for(place)
            self.outages.probed(place, answered=is_there and (trouble is None or trouble.kind == "refuses"))
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
            world = self._node.world
            known = self._partitioned(topic)
            return known._replace(unavailable=world.known_away(topic), max_message_bytes=world.known_limit(topic))
        if topic in _CHANGELOGS:
            return self._partitioned(_CHANGELOGS[topic])
        return _existing(TARGET_PARTITIONS if topic in (TARGET, FRAIL) else 1)

    def _partitioned(self, topic: str) -> TargetTopic:
        return _existing(sum(tp.topic == topic for tp in self._node.world.partitions))

    async def resolve(self, topics: Set[str]) -> None:
        try:
            await self._node.reach("1.resolve")
        except KafkaConnectionError as error:
            raise BrokerError("nobody answers") from error
        self._asked |= topics

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        self._denied[topic] = refusal, self._node.world.loop.time() + seconds

    def forget_all(self) -> None:
        """Nothing changes."""

    def forget(self, topics: Iterable[str]) -> None:
        """Nothing changes."""

    async def close(self) -> None:
        """There are no connections."""


@cache
def _existing(partitions: int) -> TargetTopic:
    return TargetTopic(partitions, MAX_BATCH_BYTES, None, 0.0)
