"""Consumer groups, as their coordinator sees them."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

TIMEOUT_S = 60.0


def stable_members(bootstrap_servers: str, group: str) -> int:
    """Return how many members a group has; 0 while it gives out its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    return len(described.members) if described.state is ConsumerGroupState.STABLE else 0
