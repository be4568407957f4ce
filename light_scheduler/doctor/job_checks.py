"""Whether a job of the pipeline could run with the rights of this user."""

from __future__ import annotations

from collections.abc import Iterator

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.broker_facts import broker_facts
from light_scheduler.kafka.job_rights import Job, job_rights
from light_scheduler.kafka.missing_rights import lacking_rights
from light_scheduler.settings import Settings

from .check import Check
from .checks import TIMEOUT_S, broker_found, check_rights, check_security, no_broker
from .named_topics import named_topics


def run_job_checks(settings: Settings, job: Job) -> Iterator[Check]:
    """Yield what is found, as it is found. Blocks. There must be no event loop in this thread."""
    try:
        yield broker_found(settings, broker_facts(settings.connection, timeout=TIMEOUT_S))
    except BrokerError as error:
        yield no_broker(error)
        return
    yield from check_security(settings)
    try:
        targets = named_topics(settings, timeout=TIMEOUT_S).targets
        missing = lacking_rights(settings, job_rights(job, settings, targets), timeout=TIMEOUT_S)
    except BrokerError as error:
        yield Check("rights", "fail", str(error), "look at the broker's log")
        return
    yield from check_rights(settings, missing)
