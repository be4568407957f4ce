"""What `doctor` looks at. Nothing here writes to a topic or leaves anything behind."""

from __future__ import annotations

import ctypes
import http.client
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from light_scheduler.delays.checks import delay_problems
from light_scheduler.devkit.java import java_executable
from light_scheduler.devkit.ports import port_is_free
from light_scheduler.errors import BrokerError, BrokerStartError
from light_scheduler.settings import Settings
from light_scheduler.worker.broker_facts import BrokerFacts, broker_facts, missing_rights, single_copies
from light_scheduler.worker.topic_admin import check_topics
from light_scheduler.worker.topic_plan import topic_plan

Status = Literal["ok", "warn", "fail"]

_MIB = 1024 * 1024
_LITTLE_DISK = 1024 * _MIB
_NO_DISK = 100 * _MIB
_ANSWER_SECONDS = 2.0
_NAMED = 5
_TIMEOUT_S = 5.0

_UNSYNCHRONISED = 0x0040  # STA_UNSYNC of linux/timex.h
_TIMEX_BYTES = 256  # struct timex has 208
_TIMEX_MAXERROR_OFFSET = 24
_TIMEX_STATUS_OFFSET = 40


@dataclass(frozen=True)
class Check:
    """One line of the report; `fix` says what to do unless the status is ok."""

    name: str
    status: Status
    detail: str
    fix: str | None = None


def run_checks(settings: Settings) -> Iterator[Check]:
    """Yield what is found, as it is found."""
    yield check_python()
    yield check_java()
    yield from check_disk(settings.data_dir)
    yield check_web_port(settings)
    yield check_clock()
    try:
        facts = broker_facts(settings.bootstrap_servers, timeout=_TIMEOUT_S)
    except BrokerError as error:
        fix = "start Kafka (light-scheduler broker), or name another with --broker"
        yield Check("broker", "fail", str(error), fix)
        return
    yield Check("broker", "ok", f"{settings.bootstrap_servers}: cluster {facts.cluster_id}, {_nodes(facts.nodes)}")
    yield from check_limits(settings, facts)
    try:
        yield check_copies(facts.nodes, single_copies(settings.bootstrap_servers, timeout=_TIMEOUT_S))
        yield from check_application_topics(settings)
        yield from check_rights(settings)
        yield from check_delays(settings)
    except BrokerError as error:
        yield Check("topics", "fail", str(error), "look at the broker's log")


def check_python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def check_java() -> Check:
    """Java is only for the embedded broker, so its absence is no failure."""
    try:
        java = java_executable()
    except BrokerStartError as error:
        return Check("java", "warn", "not there; `broker` and `up` need it, nothing else does", str(error))
    return Check("java", "ok", str(java))


def check_disk(folder: Path) -> Iterator[Check]:
    """Look at the data folder, or where it will be made."""
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        fix = "give this user the right to write there, or name another folder with --data-dir"
        yield Check("data folder", "fail", f"{existing} cannot be written: {error.strerror}", fix)
        return
    yield Check("data folder", "ok", f"{folder.absolute()} can be {'written' if existing == folder else 'made'}")
    free = shutil.disk_usage(existing).free
    detail = f"{free / _MIB / 1024:,.1f} GiB free"
    status: Status = "fail" if free < _NO_DISK else "warn" if free < _LITTLE_DISK else "ok"
    yield Check("disk", status, detail, None if status == "ok" else "make room, or name another folder with --data-dir")


def check_web_port(settings: Settings) -> Check:
    """A port that is taken is fine if it is a worker that has it."""
    address = f"{settings.web_host}:{settings.web_port}"
    if port_is_free(settings.web_port, settings.web_host):
        return Check("web port", "ok", f"{address} is free")
    if _is_worker(settings.web_host, settings.web_port):
        return Check("web port", "ok", f"a worker answers on {address}")
    return Check("web port", "fail", f"{address} is in use by something else", "choose another with --web-port")


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
    return Check("clock", "ok", f"synchronised, right within {bound / 1_000:,.0f} ms")


def check_limits(settings: Settings, facts: BrokerFacts) -> Iterator[Check]:
    """Compare time-outs of the settings with what the broker allows."""
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


def check_application_topics(settings: Settings) -> Iterator[Check]:
    findings = check_topics(settings, timeout=_TIMEOUT_S)
    for finding in findings:
        yield Check("topics", "fail", f"{finding.topic} {finding.problem}", finding.fix)
    if not findings:
        yield Check("topics", "ok", f"{len(topic_plan(settings))} topics of {settings.app_id} are as they should be")


def check_copies(nodes: int, singles: Sequence[str]) -> Check:
    """Warn of topics with one copy among several nodes: Kafka forgets transactions where there is no leader."""
    if nodes == 1 or not singles:
        return Check("copies", "ok", "one node has all" if nodes == 1 else "every topic has more than one")
    more = f" and {len(singles) - _NAMED} more" if len(singles) > _NAMED else ""
    return Check(
        "copies",
        "warn",
        f"only one of {', '.join(singles[:_NAMED])}{more}: firings there may be lost or doubled while its node is away",
        "give targets and workers' topics three copies (kafka-reassign-partitions.sh): see docs/operating.md",
    )


def check_rights(settings: Settings) -> Iterator[Check]:
    missing = missing_rights(settings, timeout=_TIMEOUT_S)
    for right in missing:
        yield Check("rights", "fail", right, "add an ACL for the user that workers connect as")
    if not missing:
        yield Check("rights", "ok", "topics and group; those on transactional ids cannot be asked for")


def check_delays(settings: Settings) -> Iterator[Check]:
    """Look whether the topics of the delay rules are there, and keep their records for long enough."""
    problems = delay_problems(settings, timeout=_TIMEOUT_S)
    for problem in problems.found:
        yield Check("delays", "warn", problem, "see docs/delayed-topics.md")
    if not problems.found:
        yield Check("delays", "ok", f"{problems.rules} delay rules, nothing in their way")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _is_worker(host: str, port: int) -> bool:
    with closing(http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)) as connection:
        try:
            connection.request("GET", "/live")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
