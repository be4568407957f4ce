"""All checks of `doctor`. They write to no topic and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from light_scheduler.clock import SystemClock
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.broker_facts import broker_facts
from light_scheduler.kafka.missing_rights import missing_rights
from light_scheduler.kafka.replicas import frail_topics
from light_scheduler.settings import Settings

from .access_checks import check_access, check_web_certificates
from .check import Check
from .kafka_checks import (
    TIMEOUT_S,
    broker_found,
    check_application_topics,
    check_delays,
    check_limits,
    check_replicas,
    check_rights,
    check_security,
    check_target_topics,
    existing_topics,
    no_broker,
)
from .machine_checks import check_clock, check_disk, check_java, check_python, check_web_port
from .named_topics import named_topics
from .worker_checks import Info, check_lanes, check_targets, info_of_worker


def run_checks(settings: Settings, info: Info | None = None, targets: Sequence[str] = ()) -> Iterator[Check]:
    """Yield findings as they are made. `info` is the `/info` of the worker with these settings; None: request it.
    `targets` are topics that schedules are delivered to.

    Blocks. This thread must not have a running event loop.
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
