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
_CONFIGS = ("max.message.bytes", "cleanup.policy", "message.timestamp.type")

_REFUSALS = {
    UnknownTopicOrPartitionError: "topic {topic} does not exist",
    InvalidTopicError: "{topic} is not a legal topic name",
    TopicAuthorizationFailedError: "the scheduler is not authorised to write to topic {topic}",
}


class TargetTopic(NamedTuple):
    """A topic as a target: partitions, the largest batch (bytes) it takes, or why nothing can be written to it.

    One that is compacted takes no record without a key. One that `stamps_appends` replaces timestamps by its own clock.
    """

    partitions: int
    max_message_bytes: int
    refusal: str | None
    asked_at: float
    is_compacted: bool = False
    stamps_appends: bool = False


def refusal_of(topic: str, error: KafkaError) -> str:
    """Say what a topic's refusal means."""
    known = _REFUSALS.get(type(error))
    return f"topic {topic} refused it: {error!r}" if known is None else known.format(topic=topic)


class Targets:
    """A cache of topics, shared by the lanes of a worker; asks the broker for those it does not know."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._admin: AIOKafkaAdminClient | None = None
        self._known: dict[str, TargetTopic] = {}
        self._denied: dict[str, tuple[str, float]] = {}  # topic -> why, and until when
        self._lock = asyncio.Lock()

    def __getitem__(self, topic: str) -> TargetTopic:
        """Return what was resolved last. Raises KeyError for a topic that never was."""
        return self._known[topic]

    def forget_all(self) -> None:
        """Ask again about every topic when it is needed next."""
        self._known = {name: topic._replace(asked_at=-FRESH_S) for name, topic in self._known.items()}

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        """Take a topic that is there for one that nothing can be written to, for a while.

        For what only an attempt to write shows, such as a right that is missing: each attempt costs a transaction.
        """
        self._denied[topic] = refusal, time.monotonic() + seconds
        if topic in self._known:
            self._known[topic] = self._known[topic]._replace(asked_at=-FRESH_S)

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
        configs = await self._configs(present) if present else {}
        self._denied = {name: denied for name, denied in self._denied.items() if denied[1] > now}
        for topic in described:
            name, error = topic["topic"], for_code(topic["error_code"])
            if name in self._denied:
                refusal, until = self._denied[name]
                self._known[name] = TargetTopic(0, 0, refusal, min(now, until - ABSENT_FRESH_S))
            elif name in configs:
                config = configs[name]
                self._known[name] = TargetTopic(
                    len(topic["partitions"]),
                    int(config.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES)),
                    None,
                    now,
                    is_compacted="compact" in config.get("cleanup.policy", "").split(","),
                    stamps_appends=config.get("message.timestamp.type") == "LogAppendTime",
                )
            elif error in _REFUSALS:
                self._known[name] = TargetTopic(0, 0, _REFUSALS[error].format(topic=name), now)
            else:  # for instance a leader election: it passes
                raise KafkaConnectionError(f"topic {name} is not available: {error.__name__}")

    async def _configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {topic: {} for topic in topics}
        assert self._admin is not None
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(_CONFIGS)) for topic in topics]
        for response in await self._admin.describe_configs(resources):
            # Without the right to read configurations the broker's defaults are assumed.
            for error_code, _, _, name, configs in (resource[:5] for resource in response.resources):
                if error_code == 0:
                    found[name] = {config[0]: config[1] for config in configs}
        return found


def _is_fresh(topic: TargetTopic, now: float) -> bool:
    return now - topic.asked_at < (FRESH_S if topic.refusal is None else ABSENT_FRESH_S)
