"""What the worker knows of the topics that it delivers to."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from light_scheduler.errors import BrokerError

FRESH_S = 60.0
"""How long an answer about a topic that exists is used before it is asked for again (it may have grown)."""
ABSENT_FRESH_S = 2.0
TIMEOUT_S = 5.0
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588

_REFUSALS = {
    UnknownTopicOrPartitionError: "topic {topic} does not exist",
    InvalidTopicError: "{topic} is not a legal topic name",
    TopicAuthorizationFailedError: "the scheduler is not authorised to write to topic {topic}",
}


class TargetTopic(NamedTuple):
    """A topic as a target: partitions, the largest batch (bytes) it takes, or why nothing can be written to it."""

    partitions: int
    max_message_bytes: int
    refusal: str | None
    asked_at: float


class Targets:
    """A cache of topics, shared by the lanes of a worker; asks the broker for those it does not know."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._admin: AIOKafkaAdminClient | None = None
        self._known: dict[str, TargetTopic] = {}
        self._lock = asyncio.Lock()

    def __getitem__(self, topic: str) -> TargetTopic:
        """Return what was resolved last. Raises KeyError for a topic that never was."""
        return self._known[topic]

    def forget_all(self) -> None:
        """Ask again about every topic when it is needed next."""
        self._known = {name: topic._replace(asked_at=-FRESH_S) for name, topic in self._known.items()}

    async def resolve(self, topics: set[str]) -> None:
        """Make sure that every topic is known. Raises BrokerError if the broker does not answer."""
        now = time.monotonic()
        if all((known := self._known.get(topic)) is not None and _is_fresh(known, now) for topic in topics):
            return
        async with self._lock:
            stale = [topic for topic in topics if not ((t := self._known.get(topic)) and _is_fresh(t, now))]
            if stale:
                try:
                    async with asyncio.timeout(TIMEOUT_S):
                        await self._ask(stale, now)
                except (KafkaError, OSError, TimeoutError) as error:
                    raise BrokerError(f"cannot look up topics {', '.join(stale[:5])}: {error!r}") from error

    async def close(self) -> None:
        """Close the connection."""
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    async def _ask(self, topics: list[str], now: float) -> None:
        if self._admin is None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap_servers)
            try:
                await admin.start()
            except BaseException:
                await admin.close()
                raise
            self._admin = admin
        described = await self._admin.describe_topics(topics)
        present = [topic["topic"] for topic in described if topic["error_code"] == 0 and topic["partitions"]]
        sizes = await self._max_message_bytes(present) if present else {}
        for topic in described:
            name, error = topic["topic"], for_code(topic["error_code"])
            if name in sizes:
                self._known[name] = TargetTopic(len(topic["partitions"]), sizes[name], None, now)
            elif error in _REFUSALS:
                self._known[name] = TargetTopic(0, 0, _REFUSALS[error].format(topic=name), now)
            else:  # for instance a leader election: it passes
                raise KafkaConnectionError(f"topic {name} is not available: {error.__name__}")

    async def _max_message_bytes(self, topics: list[str]) -> dict[str, int]:
        sizes = dict.fromkeys(topics, DEFAULT_MAX_MESSAGE_BYTES)
        assert self._admin is not None
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": None}) for topic in topics]
        for response in await self._admin.describe_configs(resources):
            # Without the right to read configurations the broker's default is assumed.
            for error_code, _, _, name, configs in (resource[:5] for resource in response.resources):
                for config in configs if error_code == 0 else []:
                    if config[0] == "max.message.bytes":
                        sizes[name] = int(config[1])
        return sizes


def _is_fresh(topic: TargetTopic, now: float) -> bool:
    return now - topic.asked_at < (FRESH_S if topic.refusal is None else ABSENT_FRESH_S)
