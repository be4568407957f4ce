"""The largest record that the commands topic takes, for the reasons of refused commands."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from light_scheduler.connection import Connection
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.topic_admin import topic_configuration

LOOK_UP_S = 2.0
LASTS_S = 60.0
"""How long an answer counts, and a failure too: a relay that looked once for each row would lose its shards."""


class TopicLimit:
    """Looks up `max.message.bytes` of a topic, at most once a minute. `monotonic` is in seconds."""

    def __init__(self, connection: Connection, topic: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._connection, self._topic, self._monotonic = connection, topic, monotonic
        self._known: int | None = None
        self._looked_at = -math.inf

    async def largest(self) -> int | None:
        """Return the limit in bytes; None if it cannot be looked up: few relays have the right to."""
        if self._monotonic() - self._looked_at > LASTS_S:
            self._known = await asyncio.to_thread(self._look_up)
            self._looked_at = self._monotonic()
        return self._known

    def _look_up(self) -> int | None:
        try:
            return topic_configuration(self._connection, self._topic, timeout=LOOK_UP_S).max_message_bytes
        except SchedulerError:
            return None
