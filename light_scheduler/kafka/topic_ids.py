"""The ids of the commands topics: they tell a topic from an earlier one of its name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from light_scheduler.connection import Connection
from light_scheduler.errors import NoAnswer

from .lasting_admin import LastingAdmin
from .topic_admin import topic_id

FRESH_S = 1.0
"""How long an answer is used while nothing that happens casts doubt on it."""

TIMEOUT_S = 2.0
UNANSWERED_S = 10.0
"""How long an older answer is used when no broker gives a new one: a lane waits for each attempt."""

log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """An answer, until when it is good, and the doubts that were there before it."""

    id: str
    until: float
    doubts: int | None
    """None: doubts do not count."""


class TopicIds:
    """Looks topic ids up, and keeps them for a moment.

    A topic can be deleted and created again under a reader that does not notice: if the new one has more records than
    were read of the old one, reading goes on in it. In between a fetch fails, or a connection does: `doubt` says so,
    and what was asked before does not count. Without an answer the last one is used: a broker that is away must not
    hold commands up.
    """

    def __init__(self, ask: Callable[[str], Awaitable[str]], monotonic: Callable[[], float]) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._doubts = 0

    def doubt(self) -> None:
        """Ask again when an id is needed next; from any thread."""
        self._doubts += 1

    async def now(self, topic: str) -> str:
        """Return the id that a topic has now. Raises BrokerError."""
        begun, doubts = self._monotonic(), self._doubts
        answer = await self._ask(topic)
        self._known[topic] = _Known(answer, begun + FRESH_S, doubts)
        return answer

    async def lately(self, topic: str) -> str:
        """Return the id that a topic had a moment ago, and since the last doubt. Raises BrokerError."""
        async with self._locks.setdefault(topic, asyncio.Lock()):
            known = self._known.get(topic)
            if known is not None and self._monotonic() < known.until and known.doubts in (None, self._doubts):
                return known.id
            try:
                return await self.now(topic)
            except NoAnswer as error:
                if known is None:
                    raise
                log.warning("cannot tell whether topic %s is still the same: %s", topic, error)
                self._known[topic] = _Known(known.id, self._monotonic() + UNANSWERED_S, None)
                return known.id


class TopicIdLookUp:
    """Asks for topic ids over a connection that stays, since lanes with commands ask again and again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._admin = LastingAdmin(connection)

    async def __call__(self, topic: str) -> str:
        """Return a topic's id. Raises BrokerError; NoAnswer if a second client gets none either."""
        try:
            return await self._ask(topic)
        except NoAnswer as error:
            log.debug("asking anew for the id of %s: %s", topic, error)
        return await self._ask(topic)

    async def _ask(self, topic: str) -> str:
        admin = self._admin()
        try:
            return await asyncio.to_thread(topic_id, self._connection, topic, timeout=TIMEOUT_S, admin=admin)
        except NoAnswer:
            self._admin.replace(admin)
            raise
