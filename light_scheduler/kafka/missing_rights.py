"""Finds the rights that a worker lacks, by asking the broker. Blocking calls with a timeout; they raise BrokerError."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]  # exported without __all__

from light_scheduler.errors import BrokerError
from light_scheduler.model import DelayRule
from light_scheduler.model.topics import karafka_states_topic
from light_scheduler.settings import Settings

from .compacted import change_id
from .fencing import ids_of
from .id_rights import denied_ids
from .rights import Operation, Right
from .topic_admin import TIMEOUT_S, admin_client, awaited, is_caused_by, partition_counts
from .topic_plan import topic_plan

_POLL_S = 0.1
_TRY_S = 1.0
_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,  # librdkafka does not retry by itself
)
_OPERATIONS: Mapping[Operation, AclOperation] = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Alter": AclOperation.ALTER,
}


@dataclass(frozen=True)
class MissingRight:
    """A missing right, and the problem as a sentence."""

    problem: str
    right: Right


def missing_rights(
    settings: Settings, rules: Collection[DelayRule], targets: Iterable[str] = (), *, timeout: float = TIMEOUT_S
) -> list[MissingRight]:
    """Return the rights that workers need but do not have, on topics, groups and transactional ids.

    `rules` are the delay rules in force, and `targets` are known targets of schedules.
    """
    admin = admin_client(settings.connection)
    partition_counts(admin, settings.connection, timeout)  # raises the best error if no broker answers
    missing = _on_topics(admin, needed_rights(settings, rules, targets), timeout)
    for group in (settings.app_id, settings.topics.delay_group):
        missing += _on_group(admin, group, ["Read"], timeout)
    return missing + _on_ids(settings, timeout, has_rules=bool(rules))


def missing_of(settings: Settings, rights: Iterable[Right], *, timeout: float = TIMEOUT_S) -> list[MissingRight]:
    """Return the given rights that this user does not have. Prefixed rights are tried with one name with the prefix."""
    admin = admin_client(settings.connection)
    partition_counts(admin, settings.connection, timeout)  # raises the best error if no broker answers
    missing: list[MissingRight] = []
    for right in rights:
        name = right.name if right.pattern == "literal" else f"{right.name}0"
        if right.resource == "topic":
            missing += _on_topics(admin, {name: list(right.operations)}, timeout)
        elif right.resource == "group":
            found = _on_group(admin, name, right.operations, timeout)
            missing += [MissingRight(_problem(right), right)] if found else []
        elif asyncio.run(denied_ids(settings.connection, [name], timeout)):
            missing.append(MissingRight(_problem(right), right))
    return missing


def _problem(right: Right) -> str:
    operations = " and ".join(_OPERATIONS[operation].name for operation in right.operations)
    rest = "..." if right.pattern == "prefixed" else ""
    return f"no right {operations} on {right.resource.replace('-', ' ')} {right.name}{rest}"


def needed_rights(
    settings: Settings, rules: Iterable[DelayRule], targets: Iterable[str] = ()
) -> dict[str, list[Operation]]:
    """Return the operations of workers on each topic: the application's own, topics of delay rules, and targets."""
    names = settings.topics
    needed: dict[str, list[Operation]] = {spec.name: ["Read", "Write"] for spec in topic_plan(settings)}
    for source in settings.inputs:  # workers also write commands: from HTTP, or for another partition
        needed[source.name] = ["Read", "Write"]
        needed[names.changelog(source.name)] = ["Read", "Write", "DescribeConfigs"]
        if source.dialect == "karafka":
            needed[karafka_states_topic(source.name)] = ["Write"]
    others: list[tuple[str, list[Operation]]] = [(topic, ["Write"]) for topic in targets]
    for rule in rules:
        others += [(rule.source, ["Read", "DescribeConfigs"]), (rule.target, ["Write"])]
    for topic, operations in others:
        needed[topic] = list(dict.fromkeys([*needed.get(topic, []), *operations]))
    return needed


def _on_topics(admin: AdminClient, rights: Mapping[str, list[Operation]], timeout: float) -> list[MissingRight]:
    names = TopicCollection([*rights])
    futures = admin.describe_topics(names, include_authorized_operations=True, request_timeout=timeout)
    missing = []
    for name, needed in rights.items():
        try:
            allowed = awaited(futures[name], timeout, f"describing topic {name}").authorized_operations
        except BrokerError as error:
            if is_caused_by(error, KafkaError.UNKNOWN_TOPIC_OR_PART):
                continue  # another check reports it
            if not is_caused_by(error, KafkaError.TOPIC_AUTHORIZATION_FAILED):
                raise
            allowed = []
        missing += _lacking("topic", name, needed, allowed)
    return missing


def _on_group(admin: AdminClient, group: str, needed: Collection[Operation], timeout: float) -> list[MissingRight]:
    doing = f"describing group {group}"
    deadline = time.monotonic() + timeout
    while True:
        future = admin.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=_TRY_S)
        try:
            description = awaited(future[group], _TRY_S, doing)
        except BrokerError as error:
            if is_caused_by(error, KafkaError.GROUP_AUTHORIZATION_FAILED):
                return _lacking("group", group, needed, [])
            # A cluster without groups creates the coordinator on the first request.
            if not any(is_caused_by(error, code) for code in _NO_COORDINATOR_YET) or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return _lacking("group", group, needed, description.authorized_operations)


def _on_ids(settings: Settings, timeout: float, *, has_rules: bool) -> list[MissingRight]:
    """Check the ids of one partition of each commands topic with their spares, one id of probes and of delay rules, and
    the ids for changes over HTTP.
    """
    app_id, names = settings.app_id, settings.topics
    lanes = [ids_of(names.transactional_id(source.name, 0)) for source in settings.inputs]
    probe, delay = f"{app_id}-probe-00000000", f"{names.delays}/-"
    over_http = {
        change_id(names.tenants): "tenants and tokens cannot be changed over HTTP",
        change_id(names.delays): "delay rules cannot be changed over HTTP",
        f"{names.redrives}-": "dead letters cannot be redriven",
    }
    wanted = [one for ids in lanes for one in ids] + [probe, delay, *over_http]
    denied = asyncio.run(denied_ids(settings.connection, wanted, timeout))
    right = Right("transactional-id", app_id, ("Write",), "prefixed")
    missing = [MissingRight(problem, right) for ids in lanes if (problem := problem_of_ids(ids, denied)) is not None]
    if probe in denied:
        problem = (
            f"no right WRITE on transactional ids {app_id}-probe-...: workers test with them whether a target is back"
        )
        missing.append(MissingRight(problem, right))
    if delay in denied and has_rules:
        missing.append(
            MissingRight(f"no right WRITE on transactional ids {names.delays}/...: delay rules need them", right)
        )
    return missing + [
        MissingRight(f"no right WRITE on transactional id {id.replace('/-', '/...')}: {effect}", right)
        for id, effect in over_http.items()
        if id in denied
    ]


def problem_of_ids(ids: Sequence[str], denied: Collection[str]) -> str | None:
    """Describe the missing rights on a lane's transactional ids, of which the first is the preferred one."""
    first, *spares = ids
    if first in denied:
        return f"no right WRITE on transactional id {first}"
    if not any(spare in denied for spare in spares):
        return None
    return (
        f"no right WRITE on transactional ids {spares[0]} to {spares[-1]}, the spares of {first}: they look stuck, and "
        "the partition stops when a target blocks its first id. An ACL for one literal id does not cover them"
    )


def _lacking(
    resource: str, name: str, needed: Collection[Operation], allowed: Collection[AclOperation] | None
) -> list[MissingRight]:
    """Return the missing rights. `allowed` is None if the broker has no authoriser, which allows everything."""
    if allowed is None:
        return []
    return [
        MissingRight(
            f"no right {_OPERATIONS[operation].name} on {resource} {name}",
            Right("topic" if resource == "topic" else "group", name, (operation,)),
        )
        for operation in needed
        if _OPERATIONS[operation] not in allowed
    ]
