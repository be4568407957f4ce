"""Whether this user has the rights to run a job of the pipeline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.broker_facts import broker_facts
from light_scheduler.kafka.job_rights import SINCE_LAST, WITH_TARGETS, Job, job_rights
from light_scheduler.kafka.missing_rights import MissingRight, missing_of
from light_scheduler.kafka.rights import Right
from light_scheduler.settings import Settings

from .check import Check
from .kafka_checks import TIMEOUT_S, acl_line, broker_found, check_rights, check_security, existing_topics, no_broker
from .named_topics import NamedTopics, named_topics


def run_job_checks(settings: Settings, job: Job, targets: Sequence[str] = ()) -> Iterator[Check]:
    """Yield findings as they are made. `targets` are topics that the job's schedules are delivered to.

    Blocks. This thread must not have a running event loop.
    """
    connection = settings.connection
    try:
        yield broker_found(settings, broker_facts(connection, timeout=TIMEOUT_S))
    except BrokerError as error:
        yield no_broker(error)
        return
    yield from check_security(settings)
    try:
        named = named_topics(settings, timeout=TIMEOUT_S)
        rights = job_rights(job, settings, [*named.targets, *targets])
        missing = missing_of(settings, rights, timeout=TIMEOUT_S)
        existing = existing_topics(settings)
    except BrokerError as error:
        yield Check("rights", "fail", str(error), "look at the broker's log")
        return
    yield from check_job_topics(rights, missing, existing)
    yield from check_job_rights(settings, missing)
    if job in WITH_TARGETS and not targets:
        yield from check_named_targets(settings, named)


def check_job_topics(
    rights: Sequence[Right], missing: Sequence[MissingRight], existing: Collection[str]
) -> Iterator[Check]:
    """Warn of topics that do not exist, since rights on them could not be checked."""
    known = {*existing, *(each.right.name for each in missing)}
    for right in rights:
        if right.resource == "topic" and right.name not in known:
            yield Check(
                "topics",
                "warn",
                f"{right.name} does not exist, so rights on it were not checked",
                "check --app-id, --commands-topics and --target, or create the topic: light-scheduler topics create",
            )


def check_job_rights(settings: Settings, missing: Sequence[MissingRight]) -> Iterator[Check]:
    """Report each missing right. The right that only `audit --since-last` needs is just a warning."""
    needed = [each for each in missing if each.right != SINCE_LAST]
    if needed or not missing:
        yield from check_rights(settings, needed)
    if len(needed) < len(missing):
        detail = f"no right READ on group {SINCE_LAST.name}...: only `audit --since-last` needs it"
        yield Check("rights", "warn", detail, acl_line(settings, SINCE_LAST))


def check_named_targets(settings: Settings, named: NamedTopics) -> Iterator[Check]:
    """Warn if no target is known, since no rights on targets were checked."""
    if named.targets:
        return
    tenants = settings.topics.tenants
    reason = "no rule of a tenant names one" if named.knows_tenants else f"this user cannot read {tenants}"
    yield Check(
        "targets",
        "warn",
        f"no target topic is known, so no rights on targets were checked: {reason}",
        "name the topics that schedules are delivered to: --target TOPIC",
    )
