"""Topic administration: creates, checks and describes topics.

All calls block for at most `timeout` seconds per request, so asyncio code runs them in a thread. They raise
BrokerError.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from light_scheduler.connection import Address, connection_to
from light_scheduler.connection.diagnosis import require_access
from light_scheduler.errors import BrokerError, BrokerUnreachable, ConfigurationError, NoAnswer
from light_scheduler.model.topic_configuration import TopicConfiguration, configuration_of
from light_scheduler.settings import Settings
from light_scheduler.settings.values import COMPATIBLE_DIALECTS, CommandsTopic

from .topic_commands import configure_topic_command, create_topics_command, even_partitions_command
from .topic_plan import TopicSpec, partitions_of_changelogs, topic_plan

T = TypeVar("T")

TIMEOUT_S = 15.0
REACH_S = 3.0
"""How long the first request waits for a connection. This is shorter than the timeout for answers."""

_POLL_S = 0.05
_GRACE_S = 1.0
_DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)

log = logging.getLogger(__name__)

# librdkafka logs each failed connection. The raised error reports it once.
_SILENT = logging.Logger("light_scheduler.kafka.topic_admin", logging.CRITICAL + 1)


@dataclass(frozen=True)
class TopicsReport:
    """The result of `create_topics`: created topics, and existing topics, which were not changed.

    `created_again` has the created commands topics whose changelogs existed, with their number of partitions.
    """

    created: tuple[str, ...]
    existing: tuple[str, ...]
    created_again: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicFinding:
    """A topic with a wrong configuration, the problem, and the fix.

    With the status `warn`, it is only advice: workers still run.
    """

    topic: str
    kind: Literal["missing", "partitions", "cleanup.policy", "max.message.bytes", "min.compaction.lag.ms"]
    problem: str
    fix: str
    status: Literal["fail", "warn"] = "fail"


def create_topics(
    settings: Settings,
    *,
    timeout: float = TIMEOUT_S,
    partitions_requested: bool = False,
    lost: Mapping[str, int] | None = None,
) -> TopicsReport:
    """Create missing topics and wait until they can be used. Existing topics are not changed.

    A commands topic whose changelog exists gets as many partitions as `lost` says, by default as many as the changelog.
    With `partitions_requested`, raises ConfigurationError if these are more than `settings.partitions`.
    """
    admin = admin_client(settings.connection)
    existing = partition_counts(admin, settings.connection, min(timeout, REACH_S))
    again = {
        name: (lost or {}).get(name, count) for name, count in partitions_of_changelogs(settings, existing).items()
    }
    if partitions_requested:
        _refuse_fewer_partitions(settings, again)
    plan = topic_plan(settings, existing, again)
    missing = [spec for spec in plan if spec.name not in existing]
    created = _create(admin, [_new_topic(spec) for spec in missing], timeout)
    return TopicsReport(
        created,
        tuple(spec.name for spec in plan if spec.name not in created),
        {name: count for name, count in again.items() if name in created},
    )


def grow_topic(settings: Settings, topic: str, partitions: int, *, timeout: float = TIMEOUT_S) -> None:
    """Add partitions to a commands topic and its changelog, up to `partitions`.

    The changelog comes first, since a commands partition needs a changelog partition.
    """
    admin = admin_client(settings.connection)
    existing = partition_counts(admin, settings.connection, min(timeout, REACH_S))
    for name in (settings.topics.changelog(topic), topic):
        if existing.get(name, 0) < partitions:
            doing = f"adding partitions to topic {name}"
            awaited(
                admin.create_partitions([NewPartitions(name, partitions)], request_timeout=timeout)[name],
                timeout,
                doing,
            )
            _await_leaders(admin, [name], timeout)


def create_topic(
    connection: Address,
    topic: str,
    partitions: int,
    *,
    configs: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_S,
) -> bool:
    """Create a topic with `configs` and otherwise the broker's defaults. Return False if it exists already."""
    new = NewTopic(topic, num_partitions=partitions, config=dict(configs or {}))
    return bool(_create(admin_client(connection), [new], timeout))


def check_topics(settings: Settings, *, timeout: float = TIMEOUT_S) -> list[TopicFinding]:
    """Compare the topics of an application with its needs. Returns an empty list if all are correct."""
    admin = admin_client(settings.connection)
    existing = partition_counts(admin, settings.connection, min(timeout, REACH_S))
    plan = topic_plan(settings, existing)
    configs = topic_configurations(
        admin, [spec.name for spec in plan if spec.name in existing], timeout, skip_denied=True
    )
    return topic_findings(settings, existing, configs)


def topic_findings(
    settings: Settings, existing: Mapping[str, int], configs: Mapping[str, TopicConfiguration]
) -> list[TopicFinding]:
    """Return the problems of topics with these partition counts and configurations."""
    findings: list[TopicFinding] = []
    for spec in topic_plan(settings, existing):
        if spec.name not in existing:
            hidden = (
                ", or this user may not see it: `light-scheduler doctor` tells"
                if settings.connection.is_secured
                else ""
            )
            fix = create_topics_command(settings, existing)
            findings.append(TopicFinding(spec.name, "missing", f"does not exist{hidden}", fix))
        else:
            findings += _mismatches(settings, spec, existing[spec.name], configs.get(spec.name))
    return findings


def topic_id(connection: Address, topic: str, *, timeout: float = TIMEOUT_S, admin: AdminClient | None = None) -> str:
    """Return the id that distinguishes a topic from an earlier one of the same name, in librdkafka's format."""
    admin = admin or admin_client(connection)
    description = awaited(
        admin.describe_topics(TopicCollection([topic]), request_timeout=timeout)[topic],
        timeout,
        f"describing topic {topic} of {connection}",
    )
    return str(description.topic_id)


def is_empty(admin: AdminClient, topic: str, partitions: int, *, timeout: float = TIMEOUT_S) -> bool:
    """Return whether no partition of a topic has a record."""
    return written_partitions(admin, topic, partitions, timeout=timeout) == 0


def written_partitions(admin: AdminClient, topic: str, partitions: int, *, timeout: float = TIMEOUT_S) -> int:
    """Return how many partitions a topic has up to the last one with a record."""

    def offsets(spec: OffsetSpec) -> list[int]:
        places = {TopicPartition(topic, number): spec for number in range(partitions)}
        futures = admin.list_offsets(places, request_timeout=timeout)
        doing = f"reading the offsets of topic {topic}"
        found = {place.partition: awaited(future, timeout, doing).offset for place, future in futures.items()}
        return [found[number] for number in range(partitions)]

    begin, end = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
    if not partitions:
        return 0
    ends = zip(offsets(begin), offsets(end), strict=True)
    return max((number for number, (first, last) in enumerate(ends, 1) if first != last), default=0)


def topic_configuration(
    connection: Address, topic: str, *, timeout: float = TIMEOUT_S, admin: AdminClient | None = None
) -> TopicConfiguration:
    """Return a topic's effective configuration: its own values, otherwise the broker's defaults."""
    return topic_configurations(admin or admin_client(connection), [topic], timeout)[topic]


def admin_client(connection: Address) -> AdminClient:
    """Return an admin client that does not log. Raises ConfigurationError."""
    configuration = connection_to(connection).librdkafka()
    return AdminClient(
        {**configuration, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1_000},
        logger=_SILENT,
    )


def partition_counts(admin: AdminClient, connection: Address, timeout: float) -> dict[str, int]:
    """Return the number of partitions of each visible topic. Do not call this in an event loop."""
    log.debug("list the topics of Kafka at %s", connection)
    if connection_to(connection).is_secured:
        require_access(connection, timeout)  # librdkafka would retry until the timeout, whatever the reason
    try:
        topics = admin.list_topics(timeout=timeout).topics
    except KafkaException as error:
        if error.args[0].code() in _NO_ANSWER:
            require_access(connection, timeout)
            raise BrokerUnreachable(str(connection)) from error
        raise _broker_error(f"listing the topics of {connection}", error) from error
    return {name: len(topic.partitions) for name, topic in topics.items()}


def uneven(settings: Settings, source: CommandsTopic, commands: int, changelog: int) -> TopicFinding:
    """Return the finding that a changelog has a different number of partitions than its commands topic."""
    fix = even_partitions_command(settings, source, commands, changelog)
    than = "fewer" if changelog < commands else "more"
    problem = f"has {changelog} partitions, {than} than {source.name} with {commands}"
    if changelog > commands:
        problem += f". Schedules in its partitions {commands} and up do not fire"
        if source.dialect in COMPATIBLE_DIALECTS:
            problem += (
                f". Ask the owner of {source.name} before you add partitions to it: its producers may then send later "
                "commands for an id to another partition"
            )
    return TopicFinding(settings.topics.changelog(source.name), "partitions", problem, fix)


def _refuse_fewer_partitions(settings: Settings, again: Mapping[str, int]) -> None:
    for name, count in again.items():
        if settings.partitions < count:
            raise ConfigurationError(
                "partitions",
                f"must be at least {count}: {name} is missing, and its changelog {settings.topics.changelog(name)} has "
                f"the state of {count} partitions. With {settings.partitions}, schedules in the others would not fire",
            )


def _new_topic(spec: TopicSpec) -> NewTopic:
    return NewTopic(
        spec.name,
        num_partitions=spec.partitions,
        replication_factor=spec.replication_factor,
        config=spec.config_values(),
    )


def _create(admin: AdminClient, topics: list[NewTopic], timeout: float) -> tuple[str, ...]:
    """Create topics, wait until they can be used, and return the names of those that were missing."""
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
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # created concurrently: fine
                raise _broker_error(f"creating topic {name}", error) from error
    _await_leaders(admin, created, timeout)
    return tuple(created)


def _await_leaders(admin: AdminClient, names: list[str], timeout: float) -> None:
    """Wait until the metadata show a leader for each partition. Earlier clients would get errors."""
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


def topic_configurations(
    admin: AdminClient, names: list[str], timeout: float, *, skip_denied: bool = False
) -> dict[str, TopicConfiguration]:
    """Return the effective configurations of topics. `skip_denied` leaves out topics that may not be described."""
    if not names:
        return {}
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
    futures = admin.describe_configs(list(resources.values()), request_timeout=timeout)
    answers: dict[str, TopicConfiguration] = {}
    for name, resource in resources.items():
        try:
            entries = awaited(futures[resource], timeout, f"describing topic {name}")
        except BrokerError as error:
            if skip_denied and is_caused_by(error, KafkaError.TOPIC_AUTHORIZATION_FAILED):
                continue
            raise
        answers[name] = configuration_of({entry.name: entry.value for entry in entries.values()})
    return answers


def _mismatches(
    settings: Settings, spec: TopicSpec, partitions: int, config: TopicConfiguration | None
) -> list[TopicFinding]:
    findings = [
        uneven(settings, source, spec.partitions, partitions)
        for source in settings.inputs
        if spec.name == settings.topics.changelog(source.name) and partitions != spec.partitions
    ]
    if config is not None:  # None if the right to read it is missing
        findings += _configuration_findings(settings, spec, config)
    return findings


def _configuration_findings(settings: Settings, spec: TopicSpec, config: TopicConfiguration) -> Iterator[TopicFinding]:
    if config.cleanup_policy != spec.cleanup_policy and not spec.is_of_another:
        fix = configure_topic_command(settings, spec.name, f"cleanup.policy={spec.cleanup_policy}")
        problem = f"cleanup.policy is {config.cleanup_policy}; it must be {spec.cleanup_policy}"
        yield TopicFinding(spec.name, "cleanup.policy", problem, fix)
    if spec.largest_record is not None and config.max_message_bytes < spec.largest_record:
        fix = configure_topic_command(settings, spec.name, f"max.message.bytes={spec.largest_record}")
        found = f"max.message.bytes is {config.max_message_bytes}"
        if spec.is_of_another:
            problem = f"{found}; `topics create` sets {spec.largest_record}. No command over HTTP can be larger"
            yield TopicFinding(spec.name, "max.message.bytes", problem, fix, status="warn")
        else:
            problem = f"{found}; it must be at least {spec.largest_record}"
            yield TopicFinding(spec.name, "max.message.bytes", problem, fix)
    if config.min_compaction_lag_ms < spec.compaction_lag_ms:
        fix = configure_topic_command(settings, spec.name, f"min.compaction.lag.ms={spec.compaction_lag_ms}")
        problem = (
            f"min.compaction.lag.ms is {config.min_compaction_lag_ms}; `topics create` sets {spec.compaction_lag_ms}. "
            "With less, `pipeline export` can take longer while workers run, and fail"
        )
        yield TopicFinding(spec.name, "min.compaction.lag.ms", problem, fix, status="warn")


def awaited(future: Future[T], timeout: float, doing: str) -> T:
    """Wait for an answer. Error messages begin with `doing`.

    librdkafka has its own timeout, so this waits only a little longer.
    """
    try:
        return future.result(timeout + _GRACE_S)
    except TimeoutError as error:
        raise _no_answer(doing, timeout) from error
    except KafkaException as error:
        raise _broker_error(doing, error) from error


def is_caused_by(error: BrokerError, code: int) -> bool:
    """Return whether an error was caused by Kafka's error `code`."""
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == code


def _no_answer(doing: str, timeout: float) -> BrokerError:
    return NoAnswer(f"{doing}: no answer from the broker within {timeout:g} s")


def _broker_error(doing: str, error: KafkaException) -> BrokerError:
    cause: Any = error.args[0]
    if cause.code() in _NO_ANSWER:
        return NoAnswer(f"{doing}: the broker does not answer ({cause.name()})")
    if cause.code() in _DENIED:
        reason = "this user has no right to do so; docs/security.md lists the rights to give"
        return BrokerError(f"{doing}: {reason} ({cause.name()})")
    return BrokerError(f"{doing}: {cause.str() or cause.name()} ({cause.name()})")
