"""Finds topics that become unavailable if one node is lost. Blocking calls with a timeout."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import KafkaException

from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError

from .topic_admin import TIMEOUT_S, admin_client, topic_configurations


class FrailTopics(NamedTuple):
    """Names of topics, not only the scheduler's.

    In `single` topics, some partition has only one replica. In topics `without_spare`, all partitions have more, but
    min.insync.replicas requires all replicas of some partition.
    """

    single: list[str]
    without_spare: list[str]


def frail_topics(connection: Address, *, timeout: float = TIMEOUT_S) -> FrailTopics:
    """Check all visible topics. `timeout` is in seconds, for each request. Raises BrokerError."""
    admin = admin_client(connection)
    try:
        topics = admin.list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise BrokerError(f"listing the topics of {connection}: {error}") from error
    fewest = {
        name: min(len(partition.replicas) for partition in topic.partitions.values())
        for name, topic in sorted(topics.items())
        if topic.partitions
    }
    several = [name for name, replicas in fewest.items() if replicas > 1]
    configurations = topic_configurations(admin, several, timeout, skip_denied=True)
    return FrailTopics(
        single=[name for name, replicas in fewest.items() if replicas == 1],
        without_spare=[name for name, config in configurations.items() if config.min_insync_replicas >= fewest[name]],
    )
