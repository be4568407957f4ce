"""Facts about a changelog that lanes need before they trust a local copy of it."""

from __future__ import annotations

import asyncio

from light_scheduler.connection import Address
from light_scheduler.kafka.shared_question import SharedQuestion
from light_scheduler.kafka.topic_admin import admin_client, topic_configuration, topic_id
from light_scheduler.tables.usable_copy import ChangelogFacts


class ChangelogFactsLookUp:
    """Of one worker. Lanes that begin at the same time, as when a topic grows, share an answer.

    Each question has a client of its own: librdkafka takes no renewed certificates or passwords into one that is there.
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
