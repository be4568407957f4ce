"""Topic administration: making, checking and describing topics.

All calls block for at most `timeout` seconds a request, so asyncio code runs them in a thread. They raise BrokerError.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from light_scheduler.errors import BrokerError
from light_scheduler.settings import Settings

from .topic_plan import TopicSpec, topic_plan

T = TypeVar("T")

TIMEOUT_S = 15.0
_POLL_S = 0.05
_GRACE_S = 1.0

# librdkafka logs each failed connection by itself; the error that is raised says it once.
_SILENT = logging.Logger("light_scheduler.worker.topic_admin", logging.CRITICAL + 1)


@dataclass(frozen=True)
class TopicsReport:
    """What `create_topics` did: the topics it made, and those that were there and were left as they are."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


@dataclass(frozen=True)
class TopicFinding:
    """A topic that is not as it has to be, what is wrong with it, and what to do."""

    topic: str
    kind: Literal["missing", "partitions", "cleanup.policy", "max.message.bytes"]
    problem: str
    fix: str


def create_topics(settings: Settings, *, timeout: float = TIMEOUT_S) -> TopicsReport:
    """Make the topics that are missing and wait until they can be used; existing ones are not changed."""
    admin = admin_client(settings.bootstrap_servers)
    existing = partition_counts(admin, settings.bootstrap_servers, timeout)
    plan = topic_plan(settings, existing)
    missing = [spec for spec in plan if spec.name not in existing]
    created = _create(admin, [_new_topic(spec) for spec in missing], timeout)
    return TopicsReport(created, tuple(spec.name for spec in plan if spec.name not in created))


def create_topic(
    bootstrap_servers: str,
    topic: str,
    partitions: int,
    *,
    configs: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_S,
) -> bool:
    """Make a plain topic, with the broker's defaults save for `configs`; return whether it was missing."""
    new = NewTopic(topic, num_partitions=partitions, config=dict(configs or {}))
    return bool(_create(admin_client(bootstrap_servers), [new], timeout))


def check_topics(settings: Settings, *, timeout: float = TIMEOUT_S) -> list[TopicFinding]:
    """Compare the topics of an application with what it needs; an empty list says that all is well."""
    admin = admin_client(settings.bootstrap_servers)
    existing = partition_counts(admin, settings.bootstrap_servers, timeout)
    plan = topic_plan(settings, existing)
    configs = _configs(admin, [spec.name for spec in plan if spec.name in existing], timeout)
    return topic_findings(settings, existing, configs)


def topic_findings(
    settings: Settings, existing: Mapping[str, int], configs: Mapping[str, Mapping[str, str]]
) -> list[TopicFinding]:
    """Say what is wrong with topics whose partition counts and configurations are known."""
    findings: list[TopicFinding] = []
    for spec in topic_plan(settings, existing):
        if spec.name not in existing:
            fix = f"light-scheduler topics create --app-id {settings.app_id} --broker {settings.broker}"
            findings.append(TopicFinding(spec.name, "missing", "does not exist", fix))
        else:
            findings += _mismatches(settings, spec, existing[spec.name], configs.get(spec.name, {}))
    return findings


def topic_id(bootstrap_servers: str, topic: str, *, timeout: float = TIMEOUT_S) -> str:
    """Return the id that tells a topic from an earlier one of the same name, in Kafka's own spelling."""
    admin = admin_client(bootstrap_servers)
    description = awaited(
        admin.describe_topics(TopicCollection([topic]), request_timeout=timeout)[topic],
        timeout,
        f"describing topic {topic} of {bootstrap_servers}",
    )
    return str(description.topic_id)


def topic_config(bootstrap_servers: str, topic: str, *, timeout: float = TIMEOUT_S) -> dict[str, str]:
    """Return a topic's configurations in force: its own, else the broker's defaults."""
    return _configs(admin_client(bootstrap_servers), [topic], timeout)[topic]


def admin_client(bootstrap_servers: str) -> AdminClient:
    """Return a client for administration that does not log."""
    return AdminClient(
        {"bootstrap.servers": bootstrap_servers, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1_000},
        logger=_SILENT,
    )


def partition_counts(admin: AdminClient, bootstrap_servers: str, timeout: float) -> dict[str, int]:
    """Return how many partitions each topic has that this user may see."""
    try:
        topics = admin.list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise _broker_error(f"listing the topics of {bootstrap_servers}", error) from error
    return {name: len(topic.partitions) for name, topic in topics.items()}


def _new_topic(spec: TopicSpec) -> NewTopic:
    return NewTopic(
        spec.name,
        num_partitions=spec.partitions,
        replication_factor=spec.replication_factor,
        config=spec.config_values(),
    )


def _create(admin: AdminClient, topics: list[NewTopic], timeout: float) -> tuple[str, ...]:
    """Make topics, wait until they can be used, and return the names of those that were missing."""
    if not topics:
        return ()
    created = []
    futures = admin.create_topics(topics, operation_timeout=timeout, request_timeout=timeout)
    for name, future in futures.items():
        try:
            future.result(timeout + _GRACE_S)
            created.append(name)
        except TimeoutError as error:
            raise _no_answer(f"creating topic {name}", timeout) from error
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # somebody else was quicker: just as well
                raise _broker_error(f"creating topic {name}", error) from error
    _await_leaders(admin, created, timeout)
    return tuple(created)


def _await_leaders(admin: AdminClient, names: list[str], timeout: float) -> None:
    """Wait until the metadata show a leader for each partition: a client that comes before gets errors."""
    deadline = time.monotonic() + timeout
    waiting = set(names)
    while waiting:
        try:
            topics = admin.list_topics(timeout=timeout).topics
        except KafkaException as error:
            raise _broker_error("listing topics", error) from error
        waiting -= {
            name
            for name in waiting
            if name in topics
            and topics[name].partitions
            and all(partition.leader >= 0 for partition in topics[name].partitions.values())
        }
        if waiting:
            if time.monotonic() > deadline:
                raise BrokerError(f"the new topics {', '.join(sorted(waiting))} have no leaders after {timeout:g} s")
            time.sleep(_POLL_S)


def _configs(admin: AdminClient, names: list[str], timeout: float) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
    futures = admin.describe_configs(list(resources.values()), request_timeout=timeout)
    answers: dict[str, dict[str, str]] = {}
    for name, resource in resources.items():
        entries = awaited(futures[resource], timeout, f"describing topic {name}")
        answers[name] = {entry.name: entry.value for entry in entries.values() if entry.value is not None}
    return answers


def _mismatches(settings: Settings, spec: TopicSpec, partitions: int, configs: Mapping[str, str]) -> list[TopicFinding]:
    findings = []
    tools = f"--bootstrap-server {settings.bootstrap_servers} --alter --topic {spec.name}"
    for source in settings.inputs:
        if spec.name == settings.topics.changelog(source.name) and partitions != spec.partitions:
            smaller = spec.name if partitions < spec.partitions else source.name
            fix = (
                f"stop the workers, then: kafka-topics.sh --bootstrap-server {settings.bootstrap_servers} --alter "
                f"--topic {smaller} --partitions {max(partitions, spec.partitions)}"
            )
            problem = f"has {partitions} partitions; {source.name} has {spec.partitions}, and they must agree"
            findings.append(TopicFinding(spec.name, "partitions", problem, fix))
    policy = configs.get("cleanup.policy", "delete")
    if policy != spec.cleanup_policy:
        fix = f"kafka-configs.sh {tools} --add-config cleanup.policy={spec.cleanup_policy}"
        problem = f"cleanup.policy is {policy}; it must be {spec.cleanup_policy}"
        findings.append(TopicFinding(spec.name, "cleanup.policy", problem, fix))
    largest = int(configs.get("max.message.bytes", "1048588"))
    if spec.largest_record is not None and largest < spec.largest_record:
        fix = f"kafka-configs.sh {tools} --add-config max.message.bytes={spec.largest_record}"
        problem = f"max.message.bytes is {largest}; it must be at least {spec.largest_record}"
        findings.append(TopicFinding(spec.name, "max.message.bytes", problem, fix))
    return findings


def awaited(future: Future[T], timeout: float, doing: str) -> T:
    """Wait for an answer; errors begin with what was being done.

    librdkafka ends its requests itself: the wait is only a little longer.
    """
    try:
        return future.result(timeout + _GRACE_S)
    except TimeoutError as error:
        raise _no_answer(doing, timeout) from error
    except KafkaException as error:
        raise _broker_error(doing, error) from error


def _no_answer(doing: str, timeout: float) -> BrokerError:
    return BrokerError(f"{doing}: no answer from the broker within {timeout:g} s")


def _broker_error(doing: str, error: KafkaException) -> BrokerError:
    cause: Any = error.args[0]
    if cause.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
        return BrokerError(f"{doing}: the broker does not answer ({cause.name()})")
    return BrokerError(f"{doing}: {cause.str() or cause.name()} ({cause.name()})")
