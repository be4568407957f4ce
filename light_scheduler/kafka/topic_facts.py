"""Facts about a target topic, from the cluster's metadata and the topic's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    LeaderNotAvailableError,
    ListenerNotFound,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from light_scheduler.model.topic_configuration import TopicConfiguration

from .target_outages import WHOLE_TOPIC

_REFUSALS = {
    UnknownTopicOrPartitionError: "topic {topic} does not exist",
    InvalidTopicError: "{topic} is not a legal topic name",
    TopicAuthorizationFailedError: "the scheduler is not authorised to write to topic {topic}",
}
_LEADERLESS = {LeaderNotAvailableError.errno, ListenerNotFound.errno}


class TargetTopic(NamedTuple):
    """A target topic: its number of partitions and largest batch (bytes), or the reason why it is not writable.

    A compacted topic refuses records without a key. With `stamps_appends`, the broker sets timestamps by its own clock.
    `leaders` has the leader node of each partition. Partitions in `unavailable` currently accept nothing. With
    `is_denied`, we have no right to the topic, which probably exists.
    """

    partitions: int
    max_message_bytes: int
    refusal: str | None
    asked_at: float
    is_compacted: bool = False
    stamps_appends: bool = False
    leaders: tuple[int, ...] = ()
    is_denied: bool = False
    unavailable: frozenset[int] = frozenset()

    def led_like(self, partition: int) -> list[int]:
        """Return the partitions with the same leader as `partition`, including itself."""
        if not 0 <= partition < len(self.leaders):
            return [partition]
        leader = self.leaders[partition]
        return [other for other, its_leader in enumerate(self.leaders) if its_leader == leader]


def refused(refusal: str, asked_at: float, *, is_denied: bool = False) -> TargetTopic:
    """Return the facts of a topic that is not writable."""
    return TargetTopic(0, 0, refusal, asked_at, is_denied=is_denied)


def unknown(asked_at: float) -> TargetTopic:
    """Return the facts of a topic whose metadata are unavailable. Its firings wait."""
    return TargetTopic(1, TopicConfiguration().max_message_bytes, None, asked_at)


def refusal_of(topic: str, error: KafkaError) -> str:
    """Return the reason of a topic's refusal, as text."""
    known = _REFUSALS.get(type(error))
    return f"topic {topic} refused it: {error!r}" if known is None else known.format(topic=topic)


def refusal_in(described: Mapping[str, Any]) -> str | None:
    """Return why a topic is not writable according to its metadata; None if they show no reason."""
    topic, error = described["topic"], for_code(described["error_code"])
    if described.get("is_internal"):
        return f"topic {topic} is internal to Kafka"
    return _REFUSALS[error].format(topic=topic) if error in _REFUSALS else None


def is_missing(described: Mapping[str, Any]) -> bool:
    """Return whether the cluster has no such topic."""
    return bool(described["error_code"] == UnknownTopicOrPartitionError.errno)


def is_denied(described: Mapping[str, Any]) -> bool:
    """Return whether the right to describe a topic is missing."""
    return bool(described["error_code"] == TopicAuthorizationFailedError.errno)


def is_there(described: Mapping[str, Any]) -> bool:
    """Return whether a topic exists and its metadata list its partitions."""
    return described["error_code"] == 0 and bool(described["partitions"])


def topic_of(described: Mapping[str, Any], config: TopicConfiguration, asked_at: float) -> TargetTopic:
    """Return the facts of an existing topic."""
    return TargetTopic(
        len(described["partitions"]),
        config.max_message_bytes,
        None,
        asked_at,
        is_compacted=config.is_compacted,
        stamps_appends=config.stamps_appends,
        leaders=tuple(partition.get("leader", 0) for partition in sorted(described["partitions"], key=_number)),
        unavailable=frozenset(faults_of(described, config)),
    )


def _number(partition: Mapping[str, Any]) -> int:
    return int(partition.get("partition", 0))


def faults_of(described: Mapping[str, Any], config: TopicConfiguration) -> dict[int, str]:
    """Return unavailable partition -> reason, with `WHOLE_TOPIC` for all partitions of the topic."""
    if not is_there(described):
        return {WHOLE_TOPIC: f"its metadata cannot be read: {for_code(described['error_code']).__name__}"}
    faults: dict[int, str] = {}
    for partition in described["partitions"]:
        in_sync = partition.get("isr")
        # A broker requires no more replicas than the partition has.
        wanted = min(config.min_insync_replicas, len(partition.get("replicas", ())))
        if partition.get("leader", 0) < 0 or partition.get("error_code") in _LEADERLESS:
            faults[partition["partition"]] = "it has no leader"
        elif in_sync is not None and len(in_sync) < wanted:
            faults[partition["partition"]] = (
                f"it has {len(in_sync)} in-sync replica{'s' * (len(in_sync) != 1)}; min.insync.replicas is {wanted}"
            )
    return faults
