"""The ids of commands topics, which distinguish a topic from an earlier one of the same name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaError, NoError, for_code

from light_scheduler.errors import BrokerError, NoAnswer

from .lasting_client import LastingClient
from .logged_in import Place
from .promptness import open_connection
from .topic_id_request import TopicIdRequest

TIMEOUT_S = 2.5
"""A little longer than the time after which a broker counts as silent, so that the next attempt asks another one."""
UNANSWERED_S = 10.0
"""How long the last answer is used if no broker answers, since lanes wait for each attempt."""

log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """An answer, and the time (monotonic, s) of the request."""

    id: str
    asked_at: float


class TopicIds:
    """Looks up topic ids.

    A reader may not notice that a topic was deleted and created again: it fetches by name, and if the new topic has
    more records than were read from the old one, it just continues. So an id only applies to fetched records if it was
    requested after the fetch (`fresh`). Without an answer, the last id is used, so that an unavailable broker does not
    block commands.
    """

    def __init__(self, ask: Callable[[str], Awaitable[str]], monotonic: Callable[[], float]) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def now(self, topic: str) -> str:
        """Return a topic's current id. Raises BrokerError."""
        asked_at = self._monotonic()
        answer = await self._ask(topic)
        self._known[topic] = _Known(answer, asked_at)
        return answer

    async def fresh(self, topic: str) -> str:
        """Return a topic's id from a request that is not older than this call. Concurrent callers share requests.

        If no broker answers, returns the last known id. Raises BrokerError.
        """
        called_at = self._monotonic()
        async with self._locks.setdefault(topic, asyncio.Lock()):
            known = self._known.get(topic)
            if known is not None and known.asked_at >= called_at:
                return known.id
            try:
                return await self.now(topic)
            except NoAnswer as error:
                if known is None:
                    raise
                log.warning("cannot tell whether topic %s is still the same: %s", topic, error)
                self._known[topic] = _Known(known.id, self._monotonic() + UNANSWERED_S)
                return known.id


class TopicIdLookUp:
    """Requests topic ids over a lasting connection, since busy lanes ask often.

    Prefers the broker that answered last while it is connected: commits wait for the answer, and another broker might
    hang.
    """

    def __init__(self, connect: Callable[[], AIOKafkaClient]) -> None:
        self._client = LastingClient(connect)
        self._node: int | None = None

    async def __call__(self, topic: str) -> str:
        """Return a topic's id. Raises BrokerError; NoAnswer if a second try over a new connection also fails."""
        try:
            return await self._ask(topic)
        except NoAnswer as error:
            log.debug("asking anew: %s", error)
        return await self._ask(topic)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    def _proven_node(self, client: AIOKafkaClient) -> int | None:
        """Return the broker that answered last; None if its connection was closed since, as it may hang."""
        conn = open_connection(client, Place(self._node, ConnectionGroup.DEFAULT))
        return None if conn is None else self._node

    async def _ask(self, topic: str) -> str:
        client = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                client = await self._client.connected()
                proven = self._proven_node(client)
                node = client.get_random_node() if proven is None else proven
                answer = await client.send(node, TopicIdRequest(topic))
        except (KafkaError, OSError, TimeoutError) as error:
            self._node = None
            if client is not None:
                await self._client.close(only=client)
            raise NoAnswer(f"no broker tells the id of topic {topic}: {error!r}") from error
        self._node = node
        error_code, topic_id = answer.topic_id()
        if for_code(error_code) is not NoError:
            raise BrokerError(f"topic {topic} has no id: {for_code(error_code).__name__}")
        return str(topic_id)
