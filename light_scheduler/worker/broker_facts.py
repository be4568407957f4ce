"""What a broker says about itself and about our rights. Blocking, bounded calls; they raise BrokerError."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)

from light_scheduler.errors import BrokerError
from light_scheduler.settings import Settings

from .topic_admin import TIMEOUT_S, admin_client, awaited, partition_counts
from .topic_plan import topic_plan

_POLL_S = 0.1
_TRY_S = 1.0
_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,  # librdkafka does not ask again by itself
)


@dataclass(frozen=True)
class BrokerFacts:
    """A cluster and its limits; `session_timeout_ms` is (least, most)."""

    cluster_id: str
    nodes: int
    session_timeout_ms: tuple[int, int]
    max_transaction_timeout_ms: int


def broker_facts(bootstrap_servers: str, *, timeout: float = TIMEOUT_S) -> BrokerFacts:
    """Ask a broker who it is. `timeout` is in seconds, for each request."""
    admin = admin_client(bootstrap_servers)
    doing = f"describing the cluster of {bootstrap_servers}"
    cluster = awaited(admin.describe_cluster(request_timeout=timeout), timeout, doing)
    resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    configs = awaited(admin.describe_configs([resource], request_timeout=timeout)[resource], timeout, doing)

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
    )


def single_copies(bootstrap_servers: str, *, timeout: float = TIMEOUT_S) -> list[str]:
    """Return the topics, anybody's, of which some partition has one copy only."""
    try:
        topics = admin_client(bootstrap_servers).list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise BrokerError(f"listing the topics of {bootstrap_servers}: {error}") from error
    return sorted(
        name
        for name, topic in topics.items()
        if any(len(partition.replicas) == 1 for partition in topic.partitions.values())
    )


def missing_rights(settings: Settings, *, timeout: float = TIMEOUT_S) -> list[str]:
    """Return a sentence for each right that workers need and do not have, on topics that exist and on the group."""
    admin = admin_client(settings.bootstrap_servers)
    existing = partition_counts(admin, settings.bootstrap_servers, timeout)
    rights = {name: needed for name, needed in needed_rights(settings).items() if name in existing}
    return [*_on_topics(admin, rights, timeout), *_on_group(admin, settings.app_id, timeout)]


def needed_rights(settings: Settings) -> dict[str, list[AclOperation]]:
    """Return what workers do with each topic of the application."""
    commands = {source.name for source in settings.inputs}
    changelogs = {settings.topics.changelog(name) for name in commands}
    needed = {spec.name: [AclOperation.WRITE] for spec in topic_plan(settings)}
    for name in commands:  # written too: what belongs to another partition, or came over HTTP
        needed[name] = [AclOperation.READ, AclOperation.WRITE]
    for name in changelogs:
        needed[name] = [AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS]
    return needed


def _on_topics(admin: AdminClient, rights: Mapping[str, list[AclOperation]], timeout: float) -> list[str]:
    if not rights:
        return []
    names = TopicCollection([*rights])
    futures = admin.describe_topics(names, include_authorized_operations=True, request_timeout=timeout)
    missing = []
    for name, needed in rights.items():
        description = awaited(futures[name], timeout, f"describing topic {name}")
        missing += _lacking(f"topic {name}", needed, description.authorized_operations)
    return missing


def _on_group(admin: AdminClient, group: str, timeout: float) -> list[str]:
    doing = f"describing group {group}"
    deadline = time.monotonic() + timeout
    while True:
        future = admin.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=_TRY_S)
        try:
            description = awaited(future[group], _TRY_S, doing)
        except BrokerError as error:
            code = error.__cause__.args[0].code() if isinstance(error.__cause__, KafkaException) else None
            if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return [f"no right DESCRIBE on group {group}"]
            # A cluster that never had a group makes its coordinator when it is first asked for one.
            if code not in _NO_COORDINATOR_YET or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return _lacking(f"group {group}", [AclOperation.READ], description.authorized_operations)


def _lacking(resource: str, needed: Collection[AclOperation], allowed: Collection[AclOperation] | None) -> list[str]:
    """A broker without an authoriser allows everything; one that says nothing is taken at its word."""
    if allowed is None:
        return []
    return [f"no right {operation.name} on {resource}" for operation in needed if operation not in allowed]
