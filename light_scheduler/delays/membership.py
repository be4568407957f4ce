"""Assigns partitions of the rules' sources to workers, with a consumer that joins a group but reads nothing.

Lanes have their own consumers, so a rebalance does not disturb lanes that stay.
"""

from __future__ import annotations

from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.kafka.connection import HEARTBEAT_S, NEVER_MS, stop_consumer
from light_scheduler.kafka.heartbeats import bound_heartbeats, is_member
from light_scheduler.kafka.promptness import ANSWER_S, Promptness
from light_scheduler.settings import Settings

METADATA_MAX_AGE_MS = 10_000
"""Maximum time until a new partition of a source is read."""


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is not typed
    """The group `{app}-delays/sources`.

    `changed` is called after each assignment; until then, the previous assignment stays.
    """

    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._consumer: AIOKafkaConsumer | None = None
        self.topics: frozenset[str] = frozenset()
        self.assigned: frozenset[TopicPartition] = frozenset()

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Share these topics, and no others, with the other members. Raises aiokafka's errors."""
        if topics == self.topics:
            return
        if not topics:
            await self.leave()
            return
        if self._consumer is None:
            self._consumer = await self._started()
        self._consumer.subscribe(topics=list(topics), listener=self)
        self.topics = topics

    async def leave(self) -> None:
        """Leave the group."""
        consumer, self._consumer = self._consumer, None
        self.topics, self.assigned = frozenset(), frozenset()
        if consumer is not None:
            await stop_consumer(consumer)
        self._changed()

    async def confirm(self, tp: TopicPartition) -> bool:
        """Send a heartbeat. Return whether it was accepted and the partition is still ours. False during a join."""
        consumer = self._consumer
        if consumer is None or tp not in self.assigned:
            return False
        try:
            is_accepted = await is_member(consumer)
        except (KafkaError, OSError):
            return False
        is_ours = self._consumer is consumer and tp in self.assigned
        return is_accepted and is_ours and tp in consumer.assignment()

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        """Do nothing: every rebalance revokes all partitions, and most of them come back."""

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        assert self._consumer is not None
        self._consumer.pause(*assigned)
        self.assigned = frozenset(assigned)
        self._changed()

    async def _started(self) -> AIOKafkaConsumer:
        settings = self._settings
        consumer = AIOKafkaConsumer(
            **settings.connection.aiokafka(),
            group_id=settings.topics.delay_group,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout,
            heartbeat_interval_ms=int(min(HEARTBEAT_S * 1_000, settings.session_timeout / 3)),
            max_poll_interval_ms=NEVER_MS,
            enable_auto_commit=False,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        Promptness().bound(consumer._client, ANSWER_S, is_member=True)
        try:
            await consumer.start()
            bound_heartbeats(consumer)
        except BaseException:
            await stop_consumer(consumer)
            raise
        return consumer
