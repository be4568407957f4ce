"""Target topics whose copies are on brokers of a test's choice, and when they take records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.readiness import admin_client

from .arrivals import SILENT
from .waiting import eventually_blocking

TIMEOUT_S = 60.0
ATTEMPT_S = 1.0
POLL_S = 0.05

PROBE = "probe"
"""A header of records that only try whether a topic takes any."""


def place_topic(
    bootstrap_servers: str, name: str, copies: Sequence[int], configs: dict[str, str], partitions: int = 4
) -> None:
    """Create a topic with a copy of each partition on each of these brokers, the first of which leads."""
    topic = NewTopic(name, partitions, replica_assignment=[list(copies)] * partitions, config=configs)
    admin = admin_client(bootstrap_servers)  # its end would be that of what it was asked to do
    admin.create_topics([topic])[name].result(TIMEOUT_S)


async def is_known_everywhere(client: AIOKafkaClient, topic: str) -> bool:
    """Return whether each broker says who leads a topic: they learn of a new one after it has been created."""
    request = MetadataRequest([topic], allow_auto_topic_creation=False)
    try:
        answers = [await client.send(broker.nodeId, request) for broker in client.cluster.brokers()]
    except KafkaConnectionError:  # one that has died, as will be known soon
        return False
    described = [answer.to_object()["topics"][0] for answer in answers]
    return all(
        each["error_code"] == 0 and all(partition["leader"] >= 0 for partition in each["partitions"])
        for each in described
    )


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic; returns when Kafka does not list it any more."""
    admin = admin_client(bootstrap_servers)
    admin.delete_topics([name])[name].result(TIMEOUT_S)

    def is_gone() -> bool:
        return name not in admin.list_topics(timeout=TIMEOUT_S).topics

    eventually_blocking(is_gone, within=TIMEOUT_S, every=POLL_S, what=f"the end of {name}")


def leaders(admin: Any, *, but: str) -> set[int]:
    """Return who leads partitions, of all topics but one; -1 for a partition that nobody leads."""
    topics = admin.list_topics(timeout=TIMEOUT_S).topics.values()
    return {part.leader for topic in topics if topic.topic != but for part in topic.partitions.values()}


def await_leaders_elsewhere(bootstrap_servers: str, broker: int, *, but: str) -> int:
    """Wait until no partition of all topics but one needs a broker; return when that was (UTC epoch ms)."""
    admin = admin_client(bootstrap_servers)

    def lead_elsewhere() -> bool:
        return leaders(admin, but=but).isdisjoint({broker, -1})

    eventually_blocking(lead_elsewhere, within=TIMEOUT_S, every=POLL_S, what=f"others than broker {broker} as leaders")
    return SystemClock().now()


def await_writable(bootstrap_servers: str, topic: str, partitions: int = 4) -> int:
    """Write a probe to each partition until all take one; return when that was (UTC epoch ms)."""
    waiting = set(range(partitions))
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "retries": 0,
            "delivery.timeout.ms": round(ATTEMPT_S * 1_000),
            "request.timeout.ms": round(ATTEMPT_S * 1_000),
            "topic.metadata.refresh.interval.ms": 200,
            "reconnect.backoff.max.ms": 200,
        },
        logger=SILENT,
    )

    def took(error: KafkaError | None, message: Any) -> None:
        if error is None:
            waiting.discard(message.partition())

    def all_took_one() -> bool:
        for partition in sorted(waiting):
            try:
                producer.produce(topic, b"", partition=partition, headers=[(PROBE, b"")], on_delivery=took)
            except KafkaException:  # the partition is not known yet
                break
        producer.flush(2 * ATTEMPT_S)
        return not waiting

    eventually_blocking(all_took_one, within=TIMEOUT_S, every=POLL_S, what=f"{topic}: records in all partitions")
    return SystemClock().now()
