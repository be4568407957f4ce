"""Checks of Kafka: the broker and its limits, topics, replicas, rights and certificates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set

from light_scheduler.connection.certificates import read_certificates
from light_scheduler.connection.principal import principal_of
from light_scheduler.delays.checks import delay_problems
from light_scheduler.errors import BrokerError, BrokerRefused
from light_scheduler.kafka.broker_facts import BrokerFacts
from light_scheduler.kafka.missing_rights import MissingRight
from light_scheduler.kafka.replicas import FrailTopics
from light_scheduler.kafka.rights import Right, acl_commands
from light_scheduler.kafka.topic_admin import admin_client, check_topics, partition_counts
from light_scheduler.kafka.topic_plan import topic_plan
from light_scheduler.settings import Settings

from .check import Check, check_certificate, some

TIMEOUT_S = 5.0


def no_broker(error: BrokerError) -> Check:
    refused = "change the setting that the message names: see docs/security.md"
    unreachable = "start Kafka (light-scheduler broker), or name your brokers with --broker"
    return Check("broker", "fail", str(error), refused if isinstance(error, BrokerRefused) else unreachable)


def broker_found(settings: Settings, facts: BrokerFacts) -> Check:
    return Check("broker", "ok", f"{settings.bootstrap_servers}: cluster {facts.cluster_id}, {_nodes(facts.nodes)}")


def check_limits(settings: Settings, facts: BrokerFacts) -> Iterator[Check]:
    """Compare time-outs of the settings with what the broker allows."""
    if not facts.knows_limits:
        right = Right("cluster", "kafka-cluster", ("DescribeConfigs",))
        detail = "cannot compare with the broker: no right DESCRIBE_CONFIGS on the cluster (workers do not need it)"
        yield Check("time-outs", "warn", detail, acl_line(settings, right))
        return
    problems = []
    low, high = facts.session_timeout_ms
    if not low <= settings.session_timeout <= high:
        problems.append(f"session timeout {settings.session_timeout} ms is outside the broker's {low} to {high} ms")
    if settings.transaction_timeout > facts.max_transaction_timeout_ms:
        problems.append(
            f"transaction timeout {settings.transaction_timeout} ms is over the broker's "
            f"{facts.max_transaction_timeout_ms} ms"
        )
    fix = "change LIGHT_SCHEDULER_SESSION_TIMEOUT or LIGHT_SCHEDULER_TRANSACTION_TIMEOUT, or the broker's limits"
    for problem in problems:
        yield Check("time-outs", "fail", problem, fix)
    if not problems:
        yield Check("time-outs", "ok", "session and transaction time-outs are within the broker's limits")


def check_application_topics(settings: Settings, hidden: Set[str] = frozenset()) -> Iterator[Check]:
    """Compare the topics with the plan. Topics hidden from this user are left to the check of rights."""
    found = check_topics(settings, timeout=TIMEOUT_S)
    findings = [finding for finding in found if finding.kind != "missing" or finding.topic not in hidden]
    if not findings and hidden & {finding.topic for finding in found}:
        return
    for finding in findings:
        yield Check("topics", finding.status, f"{finding.topic} {finding.problem}", finding.fix)
    if not findings:
        yield Check("topics", "ok", f"{len(topic_plan(settings))} topics of {settings.app_id}: no problem found")


def existing_topics(settings: Settings) -> Collection[str]:
    """Return the topics that this user may see. Raises BrokerError."""
    connection = settings.connection
    return partition_counts(admin_client(connection), connection, TIMEOUT_S)


def check_target_topics(targets: Sequence[str], existing: Collection[str], denied: Set[str]) -> Iterator[Check]:
    """Warn of targets that do not exist, since rights on them could not be checked."""
    for target in targets:
        if target not in existing and target not in denied:
            detail = f"{target} does not exist, so rights on it were not checked"
            yield Check("targets", "warn", detail, "check --target, or create the topic")


def check_replicas(nodes: int, frail: FrailTopics) -> Iterator[Check]:
    """Warn of topics that become unavailable if one of several nodes is lost, and of the effects."""
    if nodes == 1:
        yield Check("replicas", "ok", "the cluster has one node")
        return
    if frail.single:
        yield Check(
            "replicas",
            "warn",
            f"topics with one replica: {some(frail.single)}. Firings there can be lost or duplicated while its "
            "node is down",
            "give targets and workers' topics three replicas (kafka-reassign-partitions.sh): see docs/operating.md",
        )
    if frail.without_spare:
        yield Check(
            "replicas",
            "warn",
            f"topics whose min.insync.replicas equals their number of replicas: {some(frail.without_spare)}. While a "
            "node is down they accept no records, and Kafka may delay all transactions by request.timeout.ms (30 s)",
            "give them three replicas and min.insync.replicas=2: see docs/operating.md",
        )
    if not (frail.single or frail.without_spare):
        yield Check("replicas", "ok", "every topic stays writable when a node goes down")


def check_rights(settings: Settings, missing: Sequence[MissingRight]) -> Iterator[Check]:
    """Report each missing right, with the command that grants it."""
    for each in missing:
        yield Check("rights", "fail", each.problem, acl_line(settings, each.right))
    if not missing:
        yield Check(
            "rights",
            "ok",
            "topics, groups, transactional ids: no right is missing. Not checked: targets that only schedules name; "
            "`light-scheduler doctor --target TOPIC` checks one",
        )


def check_security(settings: Settings) -> Iterator[Check]:
    """Check how long the certificates are valid, and whether the password is sent unencrypted."""
    security = settings.security
    for setting, path in (("ssl_certificate", security.ssl_certificate), ("ssl_ca", security.ssl_ca)):
        if path is not None:
            yield check_certificate(setting, path, min(one.end for one in read_certificates(setting, path)))
    if security.security_protocol == "SASL_PLAINTEXT":
        detail = "security_protocol SASL_PLAINTEXT: data and password are not encrypted on their way to Kafka"
        yield Check("security", "warn", detail, "set up a listener with TLS, and set security_protocol to SASL_SSL")


def acl_line(settings: Settings, right: Right) -> str:
    """Return the command that grants a right to this user."""
    return acl_commands([right], principal_of(settings.connection), settings.bootstrap_servers)[0]


def check_delays(settings: Settings) -> Iterator[Check]:
    """Check that the topics of the delay rules exist and keep their records for long enough."""
    problems = delay_problems(settings, timeout=TIMEOUT_S)
    for problem in problems.found:
        yield Check("delays", "warn", problem, "see docs/delayed-topics.md")
    if not problems.found:
        yield Check("delays", "ok", f"{problems.rules} delay rules, no problem found")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
