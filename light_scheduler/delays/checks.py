"""Checks of the delay rules for problems, with blocking calls of bounded time."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from light_scheduler.engine.delays import retention_problem
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.kafka.topic_admin import TIMEOUT_S, admin_client, partition_counts, topic_configuration
from light_scheduler.model.delay import rule_book
from light_scheduler.settings import Settings

from .stored_rules import stored_rules


class DelayProblems(NamedTuple):
    """The number of rules, and a sentence for each problem."""

    rules: int
    found: list[str]


def delay_problems(settings: Settings, *, timeout: float = TIMEOUT_S) -> DelayProblems:
    """Check the rules of the configuration and of the topic. Raises BrokerError. `timeout` is in seconds."""
    connection, names = settings.connection, settings.topics
    existing = partition_counts(admin_client(connection), connection, timeout)
    entries = asyncio.run(stored_entries(connection, names.delays, timeout)) if names.delays in existing else {}
    book = rule_book(settings.delays, stored_rules(entries), settings.reserved_topics)
    found = [f"rule {name} is not in force: {reason}" for name, (_, reason) in book.refused.items()]
    for rule in book.rules.values():
        for topic in (rule.source, rule.target):
            if topic not in existing:
                found.append(f"rule {rule.name}: topic {topic} does not exist")
        if rule.source in existing:
            problem = retention_problem(rule, topic_configuration(connection, rule.source, timeout=timeout))
            if problem is not None:
                found.append(problem)
    return DelayProblems(len(book.rules) + len(book.refused), found)
