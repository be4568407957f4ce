"""Checks of `doctor`. They write to no topic and leave nothing behind."""

from __future__ import annotations

import ctypes
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from light_scheduler.clock import SystemClock
from light_scheduler.connection.certificates import read_certificates
from light_scheduler.connection.principal import principal_of
from light_scheduler.delays.checks import delay_problems
from light_scheduler.errors import BrokerError, BrokerRefused, BrokerStartError
from light_scheduler.host.java import java_executable
from light_scheduler.host.ports import port_is_free
from light_scheduler.kafka.broker_facts import BrokerFacts, broker_facts
from light_scheduler.kafka.missing_rights import MissingRight, missing_rights
from light_scheduler.kafka.replicas import FrailTopics, frail_topics
from light_scheduler.kafka.rights import Right, acl_commands
from light_scheduler.kafka.topic_admin import admin_client, check_topics, partition_counts
from light_scheduler.kafka.topic_plan import topic_plan
from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant
from light_scheduler.worker_page import page_of_worker

from .access_checks import check_access, check_web_certificates
from .check import Check, Status, check_certificate
from .named_topics import named_topics

Info = Mapping[str, Any]
"""The document that a worker answers at `/info`; empty: no worker answers."""

_MIB = 1024 * 1024
_LITTLE_DISK = 1024 * _MIB
_NO_DISK = 100 * _MIB
_ANSWER_SECONDS = 2.0
_NAMED = 5
TIMEOUT_S = 5.0

_UNSYNCHRONISED = 0x0040  # STA_UNSYNC of linux/timex.h
_TIMEX_BYTES = 256  # struct timex has 208
_TIMEX_MAXERROR_OFFSET = 24
_TIMEX_STATUS_OFFSET = 40


def run_checks(settings: Settings, info: Info | None = None, targets: Sequence[str] = ()) -> Iterator[Check]:
    """Yield what is found, as it is found. `info` is what the worker of these settings says; None: it is asked.
    `targets` are topics that schedules are delivered to.

    Blocks. There must be no event loop in this thread.
    """
    yield check_python()
    yield check_java()
    yield from check_disk(settings.data_dir)
    certificates = list(check_web_certificates(settings))
    yield from certificates
    if any(check.status == "fail" for check in certificates):
        return
    yield check_web_port(settings)
    if info is None:
        info = info_of_worker(settings)
    yield from check_lanes(info)
    yield from check_targets(info)
    yield check_clock()
    try:
        facts = broker_facts(settings.connection, timeout=TIMEOUT_S)
    except BrokerError as error:
        yield no_broker(error)
        return
    yield broker_found(settings, facts)
    yield from check_security(settings)
    yield from check_limits(settings, facts)
    try:
        yield from check_replicas(facts.nodes, frail_topics(settings.connection, timeout=TIMEOUT_S))
        named = named_topics(settings, timeout=TIMEOUT_S)
        missing = missing_rights(settings, named.rules, [*named.targets, *targets], timeout=TIMEOUT_S)
        denied = {each.right.name for each in missing}
        topics = list(check_application_topics(settings, denied))
        yield from topics
        yield from check_rights(settings, missing)
        yield from check_target_topics(targets, existing_topics(settings), denied)
        if settings.topics.tenants not in denied and not any(settings.topics.tenants in each.detail for each in topics):
            yield from check_access(settings, SystemClock())
        yield from check_delays(settings)
    except BrokerError as error:
        yield Check("topics", "fail", str(error), "look at the broker's log")


def no_broker(error: BrokerError) -> Check:
    refused = "change the setting that the message names: see docs/security.md"
    unreachable = "start Kafka (light-scheduler broker), or name your brokers with --broker"
    return Check("broker", "fail", str(error), refused if isinstance(error, BrokerRefused) else unreachable)


def broker_found(settings: Settings, facts: BrokerFacts) -> Check:
    return Check("broker", "ok", f"{settings.bootstrap_servers}: cluster {facts.cluster_id}, {_nodes(facts.nodes)}")


def check_python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def check_java() -> Check:
    """Java is only for the embedded broker, so its absence is no failure."""
    try:
        java = java_executable()
    except BrokerStartError as error:
        return Check("java", "warn", "not installed; only `broker` and `up` need it", str(error))
    return Check("java", "ok", str(java))


def check_disk(folder: Path) -> Iterator[Check]:
    """Look at the data folder, or where it will be made."""
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        fix = "allow this user to write there, or choose another folder with --data-dir"
        yield Check("data folder", "fail", f"{existing} cannot be written: {error.strerror}", fix)
        return
    yield Check("data folder", "ok", f"{folder.absolute()} can be {'written' if existing == folder else 'created'}")
    free = shutil.disk_usage(existing).free
    detail = f"{free / _MIB / 1024:,.1f} GiB free"
    status: Status = "fail" if free < _NO_DISK else "warn" if free < _LITTLE_DISK else "ok"
    yield Check(
        "disk", status, detail, None if status == "ok" else "free some space, or choose another folder with --data-dir"
    )


def check_web_port(settings: Settings) -> Check:
    """A port that is taken is fine if it is a worker that has it."""
    address = f"{settings.web_host}:{settings.web_port}"
    if port_is_free(settings.web_port, settings.web_host):
        return Check("web port", "ok", f"{address} is free")
    if page_of_worker(settings, "/live", timeout=_ANSWER_SECONDS) is not None:
        return Check("web port", "ok", f"a worker answers on {address}")
    return Check("web port", "fail", f"{address} is in use by another program", "choose another port with --web-port")


def info_of_worker(settings: Settings) -> Info:
    """Return what the worker on the web port answers at `/info`; empty if none answers."""
    page = page_of_worker(settings, "/info", timeout=_ANSWER_SECONDS, token=settings.web_token)
    try:
        info = json.loads(page or b"{}")
    except ValueError:
        return {}
    return info if isinstance(info, dict) and "lanes" in info else {}


def check_lanes(info: Info) -> Iterator[Check]:
    """Look whether the lanes of the worker on the web port read all commands once."""
    for lane in info.get("lanes", []):
        if lane.get("jump"):
            yield Check(
                "commands",
                "warn",
                f"{lane['topic']}-{lane['partition']}: {lane['jump']}",
                "find out which commands were lost, and send them again: see docs/operating.md",
            )


def check_targets(info: Info) -> Iterator[Check]:
    """List the targets that the worker on the web port cannot write to, those with the most waiting firings first."""
    if "targets" not in info:
        return
    targets = sorted(info["targets"], key=lambda target: (-target["waiting"], target["topic"]))
    for target in targets[:_NAMED]:
        topic, partitions, waiting = target["topic"], target["partitions"], target["waiting"]
        place = f"{topic}, partition{_s(partitions)} {_some(partitions)}" if partitions else topic
        since = format_instant(target["unavailable_since"])
        yield Check(
            "targets",
            "warn",
            f"{place}: unavailable since {since}, waiting firings: {waiting:,}; {target['reason']}",
            f"inspect it with kafka-topics.sh --describe --topic {topic}. Its firings go out when it is available "
            "again: see docs/operating.md",
        )
    if len(targets) > _NAMED:
        yield Check(
            "targets",
            "warn",
            f"{len(targets) - _NAMED} more topics are unavailable",
            "see `targets` in /info of the worker",
        )
    if not targets:
        yield Check("targets", "ok", "no target topic is unavailable")


def check_clock() -> Check:
    """Ask the kernel whether something keeps its clock right. The broker's clock cannot be read without writing."""
    if sys.platform != "linux":
        return Check("clock", "ok", "not checked on this system")
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    if ctypes.CDLL(None, use_errno=True).adjtimex(timex) < 0:
        return Check("clock", "warn", "the kernel does not say whether its clock is synchronised", "run an NTP client")
    status = int.from_bytes(timex.raw[_TIMEX_STATUS_OFFSET : _TIMEX_STATUS_OFFSET + 4], sys.byteorder)
    if status & _UNSYNCHRONISED:
        fix = "run an NTP client (chrony, systemd-timesyncd): workers fire by this clock"
        return Check("clock", "warn", "the kernel says that nothing synchronises its clock", fix)
    bound = int.from_bytes(timex.raw[_TIMEX_MAXERROR_OFFSET : _TIMEX_MAXERROR_OFFSET + 8], sys.byteorder)
    return Check("clock", "ok", f"synchronised, maximum error {bound / 1_000:,.0f} ms")


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
    """Compare the topics with what is needed; those that this user may not see are a matter of rights."""
    found = check_topics(settings, timeout=TIMEOUT_S)
    findings = [finding for finding in found if finding.kind != "missing" or finding.topic not in hidden]
    if not findings and hidden & {finding.topic for finding in found}:
        return
    for finding in findings:
        yield Check("topics", "fail", f"{finding.topic} {finding.problem}", finding.fix)
    if not findings:
        yield Check("topics", "ok", f"{len(topic_plan(settings))} topics of {settings.app_id}: no problem found")


def existing_topics(settings: Settings) -> Collection[str]:
    """Return the topics that this user may see. Raises BrokerError."""
    connection = settings.connection
    return partition_counts(admin_client(connection), connection, TIMEOUT_S)


def check_target_topics(targets: Sequence[str], existing: Collection[str], denied: Set[str]) -> Iterator[Check]:
    """Warn of targets that do not exist: nobody has been asked for rights on them."""
    for target in targets:
        if target not in existing and target not in denied:
            detail = f"{target} does not exist, so rights on it were not checked"
            yield Check("targets", "warn", detail, "check --target, or create the topic")


def check_replicas(nodes: int, frail: FrailTopics) -> Iterator[Check]:
    """Warn of topics that the loss of one of several nodes makes unavailable, and of what Kafka does then."""
    if nodes == 1:
        yield Check("replicas", "ok", "the cluster has one node")
        return
    if frail.single:
        yield Check(
            "replicas",
            "warn",
            f"topics with one replica: {_some(frail.single)}. Firings there can be lost or duplicated while its "
            "node is down",
            "give targets and workers' topics three replicas (kafka-reassign-partitions.sh): see docs/operating.md",
        )
    if frail.without_spare:
        yield Check(
            "replicas",
            "warn",
            f"topics whose min.insync.replicas equals their number of replicas: {_some(frail.without_spare)}. While a "
            "node is down they accept no records, and Kafka may delay all transactions by request.timeout.ms (30 s)",
            "give them three replicas and min.insync.replicas=2: see docs/operating.md",
        )
    if not (frail.single or frail.without_spare):
        yield Check("replicas", "ok", "every topic stays writable when a node goes down")


def check_rights(settings: Settings, missing: Sequence[MissingRight]) -> Iterator[Check]:
    """Name each right that is missing, with the command that gives it."""
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
    """Look how long the certificates are valid, and whether a password can be read on its way."""
    security = settings.security
    for setting, path in (("ssl_certificate", security.ssl_certificate), ("ssl_ca", security.ssl_ca)):
        if path is not None:
            yield check_certificate(setting, path, min(one.end for one in read_certificates(setting, path)))
    if security.security_protocol == "SASL_PLAINTEXT":
        detail = "security_protocol SASL_PLAINTEXT: data and password are not encrypted on their way to Kafka"
        yield Check("security", "warn", detail, "set up a listener with TLS, and set security_protocol to SASL_SSL")


def acl_line(settings: Settings, right: Right) -> str:
    """Return the command that gives this user a right."""
    return acl_commands([right], principal_of(settings.connection), settings.bootstrap_servers)[0]


def check_delays(settings: Settings) -> Iterator[Check]:
    """Look whether the topics of the delay rules are there, and keep their records for long enough."""
    problems = delay_problems(settings, timeout=TIMEOUT_S)
    for problem in problems.found:
        yield Check("delays", "warn", problem, "see docs/delayed-topics.md")
    if not problems.found:
        yield Check("delays", "ok", f"{problems.rules} delay rules, no problem found")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _some(many: Sequence[object]) -> str:
    """Name the first of many."""
    more = f" and {len(many) - _NAMED} more" if len(many) > _NAMED else ""
    return f"{', '.join(map(str, many[:_NAMED]))}{more}"


def _s(many: Sequence[int]) -> str:
    return "" if len(many) == 1 else "s"
