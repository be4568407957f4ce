"""Looks up facts about a changelog that lanes need before they trust a local copy."""

from __future__ import annotations

import asyncio

from light_scheduler.connection import Address
from light_scheduler.kafka.shared_question import SharedQuestion
from light_scheduler.kafka.topic_admin import admin_client, topic_configuration, topic_id
from light_scheduler.tables.usable_copy import ChangelogFacts


class ChangelogFactsLookUp:
    """The look-up of one worker. Lanes that start at the same time, for example when a topic grows, share an answer.

    Each look-up uses a new client, since librdkafka does not take renewed certificates or passwords into an existing
    one.
    """

    def __init__(self, connection: Address) -> None:
        self._connection = connection
        self._shared = SharedQuestion(self._ask)

    async def __call__(self, topic: str) -> ChangelogFacts:
        """Return the facts of a changelog. Raises BrokerError."""
        return await self._shared(topic)

    async def _ask(self, topic: str) -> ChangelogFacts:
        return await asyncio.to_thread(self._asked, topic)

    def _asked(self, topic: str) -> ChangelogFacts:
        connection, admin = self._connection, admin_client(self._connection)
        id = topic_id(connection, topic, admin=admin)
        return ChangelogFacts(id, topic_configuration(connection, topic, admin=admin).delete_retention_ms)
