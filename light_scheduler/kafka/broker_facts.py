"""Facts that a broker reports about itself. Blocking, bounded calls; they raise BrokerError."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    ConfigResource,
    ResourceType,
)

from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError

from .topic_admin import REACH_S, TIMEOUT_S, admin_client, awaited, is_caused_by, partition_counts


@dataclass(frozen=True)
class BrokerFacts:
    """A cluster and its limits; Kafka's defaults unless `knows_limits`. `session_timeout_ms` is (min, max)."""

    cluster_id: str
    nodes: int
    session_timeout_ms: tuple[int, int]
    max_transaction_timeout_ms: int
    knows_limits: bool = True


def broker_facts(connection: Address, *, timeout: float = TIMEOUT_S) -> BrokerFacts:
    """Ask a broker about its cluster and limits. `timeout` is in seconds, for each request."""
    admin = admin_client(connection)
    partition_counts(admin, connection, min(timeout, REACH_S))  # raises the best error if no broker answers
    doing = f"describing the cluster of {connection}"
    cluster = awaited(admin.describe_cluster(request_timeout=timeout), timeout, doing)
    resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    try:
        configs = awaited(admin.describe_configs([resource], request_timeout=timeout)[resource], timeout, doing)
    except BrokerError as error:
        if not is_caused_by(error, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
            raise
        configs = {}

    def number(name: str, default: int) -> int:
        return int(configs[name].value) if name in configs else default

    return BrokerFacts(
        cluster_id=cluster.cluster_id,
        nodes=len(cluster.nodes),
        session_timeout_ms=(
            number("group.min.session.timeout.ms", 6_000),
            number("group.max.session.timeout.ms", 1_800_000),
        ),
        max_transaction_timeout_ms=number("transaction.max.timeout.ms", 900_000),
        knows_limits=bool(configs),
    )
