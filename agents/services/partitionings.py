"""The number of partitions over which keys are distributed. The tenants topic has it, so that all workers agree."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from mode import Service

from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.retrying import RETRY_S, repeat
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.growing.records import (
    VALUE,
    TopicIncarnation,
    partitioning_in,
    partitions_key,
    stage_key,
)
from light_scheduler.model.partitioning import Partitioning

REPORT_EVERY_S = 0.1

log = logging.getLogger(__name__)


class TopicPartitionings(Service):
    """The `Partitionings` of the lanes, a service on their event loop.

    `partitions_of` returns the number of partitions that both a commands topic and its changelog have.
    """

    def __init__(
        self,
        topic: CompactedTopic,
        ids: TopicIds,
        partitions_of: Callable[[str], Awaitable[int]],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.changed: list[Callable[[], None]] = []
        self._topic = topic
        self._ids = ids
        self._partitions_of = partitions_of
        self._incarnations: dict[str, TopicIncarnation] = {}
        self._known: dict[str, Partitioning] = {}
        self._unreported: dict[bytes, None] = {}
        self._growing = asyncio.Lock()
        self._running: list[asyncio.Future[Any]] = []

    def of(self, topic: str) -> Partitioning | None:
        return self._known.get(topic)

    async def refresh(self, topic: str, partition: int) -> None:
        self._incarnations[topic] = TopicIncarnation(topic, await self._ids.fresh(topic))
        await self._topic.catch_up()
        self._read()
        if not self._is_used(topic, partition):
            async with self._growing:
                if not self._is_used(topic, partition):
                    await self._grow(topic)

    def report(self, topic: str, topic_id: str, partition: int, partitions: int, stage: Stage) -> None:
        incarnation = self._incarnations[topic]
        if topic_id and incarnation.id and topic_id != incarnation.id:
            return  # another lane has learned that the topic was created again, and this one has not
        key = stage_key(incarnation, partitions, stage, partition)
        if key not in self._topic.entries:
            self._unreported[key] = None

    async def on_start(self) -> None:
        self._running = [self.add_future(self._follow()), self.add_future(self._report())]

    async def on_stop(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _is_used(self, topic: str, partition: int) -> bool:
        known = self._known.get(topic)
        return known is not None and partition < known.partitions

    async def _grow(self, topic: str) -> None:
        """Distribute keys over all existing partitions, unless schedules are still moving after the last growth."""
        known = self._known.get(topic)
        if known is not None and not (known.is_settled and known.secret):
            return
        partitions = await self._partitions_of(topic)
        if known is not None and partitions <= known.partitions:
            return
        if known is not None:
            log.info("topic %s has grown from %d to %d partitions", topic, known.partitions, partitions)
        await self._topic.write(partitions_key(self._incarnations[topic], partitions), VALUE)
        self._read()

    def _read(self) -> None:
        """Update the partitionings from the topic's entries."""
        known = {
            topic: partitioning
            for topic, incarnation in self._incarnations.items()
            if (partitioning := partitioning_in(self._topic.entries, incarnation)) is not None
        }
        if known != self._known:
            self._known = known
            for changed in list(self.changed):
                changed()

    async def _follow(self) -> None:
        await repeat(partial(self._topic.follow, self._read), "following the numbers of partitions", self, log)

    async def _report(self) -> None:
        while not self.should_stop:
            await self.sleep(REPORT_EVERY_S)
            unreported, self._unreported = self._unreported, {}
            if new := [(key, VALUE) for key in unreported if key not in self._topic.entries]:
                try:
                    await self._topic.write_all(new)
                except SchedulerError as error:  # the lanes will report again
                    log.warning("cannot report how far schedules have moved: %s; trying again", error)
                    await self.sleep(RETRY_S)
