"""Topics that are named in Kafka instead of the configuration: by delay rules, and by the rules of tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from light_scheduler.delays.stored_rules import stored_rules
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.kafka.topic_admin import TIMEOUT_S, admin_client, partition_counts
from light_scheduler.model import DelayRule
from light_scheduler.model.delay import rule_book
from light_scheduler.model.tenant_rules import TenantBook, TenantState
from light_scheduler.settings import Settings
from light_scheduler.wire.tenants import tenant_book


class NamedTopics(NamedTuple):
    """The delay rules in force, including those of the configuration, and the targets in the rules of tenants.

    `knows_tenants`: this user may read the rules of tenants.
    """

    rules: list[DelayRule]
    targets: list[str]
    knows_tenants: bool


def named_topics(settings: Settings, *, timeout: float = TIMEOUT_S) -> NamedTopics:
    """Read them, as far as this user may; rules that cannot be read name no topics. Raises BrokerError if no broker
    answers.

    Blocks. `timeout` is in seconds.
    """
    connection, names = settings.connection, settings.topics
    existing = partition_counts(admin_client(connection), connection, timeout)

    def entries(topic: str) -> Mapping[bytes, bytes] | None:
        if topic in existing:
            with suppress(BrokerError):  # reported by another check
                return asyncio.run(stored_entries(connection, topic, timeout))
        return None

    book = rule_book(settings.delays, stored_rules(entries(names.delays) or {}), settings.reserved_topics)
    tenants = entries(names.tenants)
    targets = targets_of(tenant_book(tenants or {}), settings.internal_topics | settings.answers_only)
    return NamedTopics([*book.rules.values()], targets, tenants is not None)


def targets_of(book: TenantBook, refused: frozenset[str]) -> list[str]:
    """Return the targets in the rules of tenants, without patterns, and without topics that cannot be targets."""
    named = {
        topic
        for tenant in book.tenants.values()
        if tenant.state is not TenantState.DELETED
        for topic in (*(tenant.rules.targets or ()), tenant.rules.default_target)
        if topic is not None and "*" not in topic and topic.strip(".")  # `.` and `..` are not valid topics
    }
    return sorted(named - refused)
