"""Whether a broker answers."""

from __future__ import annotations

import logging
from typing import Any

# librdkafka reports each refused connection, which is expected until a broker has started.
_SILENT = logging.Logger("light_scheduler.devkit.readiness", logging.CRITICAL + 1)


def admin_client(bootstrap_servers: str) -> Any:
    """Return an AdminClient that silently keeps trying to connect."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
        },
        logger=_SILENT,
    )


def answers(admin: Any, timeout: float) -> bool:
    """Return whether a metadata request is answered with a registered broker within `timeout` seconds."""
    from confluent_kafka import KafkaException

    try:
        return bool(admin.list_topics(timeout=timeout).brokers)
    except KafkaException:
        return False


def all_in_sync(admin: Any, timeout: float) -> bool:
    """Return whether a new client's first broker reports within `timeout` seconds that every replica is in sync."""
    from confluent_kafka import KafkaException

    try:
        topics = admin.list_topics(timeout=timeout).topics.values()
    except KafkaException:
        return False
    return all(set(part.isrs) == set(part.replicas) for topic in topics for part in topic.partitions.values())
