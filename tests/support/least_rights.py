"""The least rights in Kafka of those who take part, as docs/security.md gives them. Tests run with no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from light_scheduler.kafka.rights import Right
from light_scheduler.model.topics import karafka_states_topic
from light_scheduler.settings import Settings


def worker_rights(settings: Settings, targets: Iterable[str] = ()) -> list[Right]:
    """Return what a worker needs: everything of its own begins with the application id."""
    prefix = settings.app_id
    rights = [
        Right("topic", prefix, ("Read", "Write", "DescribeConfigs"), "prefixed"),
        Right("group", prefix, ("Read",), "prefixed"),
        Right("transactional-id", prefix, ("Write",), "prefixed"),
    ]
    rights += [
        Right("topic", source.name, ("Read", "Write"))
        for source in settings.inputs
        if not source.name.startswith(prefix)
    ]
    rights += [
        Right("topic", karafka_states_topic(source.name), ("Write",))
        for source in settings.inputs
        if source.dialect == "karafka" and not source.name.startswith(prefix)
    ]
    rights += [Right("topic", rule.source, ("Read", "DescribeConfigs")) for rule in settings.delays]
    delivered = dict.fromkeys([*targets, *(rule.target for rule in settings.delays)])
    return rights + [Right("topic", topic, ("Write", "DescribeConfigs")) for topic in delivered]


def topic_rights(settings: Settings) -> list[Right]:
    """Return what `topics create` and `topics check` need."""
    own: tuple[Any, ...] = ("Create", "Describe", "DescribeConfigs")  # no worker has Create
    others = [source.name for source in settings.inputs if not source.name.startswith(settings.app_id)]
    return [
        Right("topic", settings.app_id, own, "prefixed"),
        *(Right("topic", name, ("Describe", "DescribeConfigs")) for name in others),
    ]


def producer_rights(settings: Settings) -> list[Right]:
    """Return what a client needs that sends commands, waits for their results, and follows the history."""
    names = settings.topics
    return [
        *(Right("topic", source.name, ("Write",)) for source in settings.inputs),
        Right("topic", names.results, ("Read",)),
        Right("topic", names.history, ("Read",)),
    ]


def administrator_rights(settings: Settings) -> list[Right]:
    """Return what `tenants` and `tokens` need on the command line."""
    names = settings.topics
    return [
        Right("topic", names.tenants, ("Read", "Write")),
        Right("topic", names.history, ("Write",)),
        Right("transactional-id", f"{names.tenants}-change", ("Write",)),
    ]


def grower_rights(settings: Settings) -> list[Right]:
    """Return what `topics grow` needs on the command line."""
    names = settings.topics
    return [
        Right("topic", names.commands, ("Alter",)),
        Right("topic", names.changelog(names.commands), ("Alter",)),
        Right("topic", names.tenants, ("Read",)),
    ]


def file_rights(settings: Settings) -> list[Right]:
    """Return what `schedule --from-file` needs besides, to mark how far a file is sent."""
    own = f"{settings.app_id}-file-"
    return [
        *(Right("topic", source.name, ("Read",)) for source in settings.inputs),
        Right("group", own, ("Read",), "prefixed"),
        Right("transactional-id", own, ("Write",), "prefixed"),
    ]


def relay_rights(settings: Settings) -> list[Right]:
    """Return what the relay of an outbox needs: the commands topic also as that of the offset that is its mark."""
    own = f"{settings.app_id}-outbox-"
    return [
        Right("topic", settings.topics.commands, ("Read", "Write")),
        Right("group", own, ("Read",), "prefixed"),
        Right("transactional-id", own, ("Write",), "prefixed"),
    ]


def consumer_rights(topics: Iterable[str], group: str) -> list[Right]:
    """Return what a consumer of firings needs."""
    return [*(Right("topic", topic, ("Read",)) for topic in topics), Right("group", group, ("Read",))]


def pipeline_rights(settings: Settings, targets: Iterable[str], load_name: str) -> list[Right]:
    """Return what the jobs on Spark need together; only `load` and `import` write, only `audit` reads targets."""
    prefix = settings.app_id
    return [
        Right("topic", prefix, ("Read", "Write", "DescribeConfigs"), "prefixed"),
        Right("group", "light-scheduler-", ("Read",), "prefixed"),
        Right("group", prefix, ("Describe",)),
        Right("group", f"{prefix}-import", ("Read",)),
        Right("transactional-id", load_name, ("Write",), "prefixed"),
        *(Right("topic", topic, ("Read", "DescribeConfigs")) for topic in targets),
    ]
