"""Adding partitions to a topic, until the broker tells of them."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from light_scheduler.devkit.waiting import wait_until

TIMEOUT_S = 60.0


def grow(admin: AdminClient, topic: str, partitions: int) -> None:
    """Have a topic be one of so many partitions; clients that ask from now on see all of them."""
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(TIMEOUT_S)

    def is_told() -> bool:
        return len(admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions) == partitions

    wait_until(is_told, timeout=TIMEOUT_S, what=f"{partitions} partitions of {topic}")
