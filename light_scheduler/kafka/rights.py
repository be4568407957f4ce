"""The least rights in Kafka of those who take part, as ACLs. Pure: no broker is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from light_scheduler.settings import Settings

Resource = Literal["topic", "group", "transactional-id", "cluster"]
Pattern = Literal["literal", "prefixed"]
Operation = Literal["Read", "Write", "Describe", "DescribeConfigs"]


@dataclass(frozen=True)
class Right:
    """Operations on a resource, or on all whose names begin so; Read and Write include Describe."""

    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    pattern: Pattern = "literal"


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
    rights += [Right("topic", rule.source, ("Read", "DescribeConfigs")) for rule in settings.delays]
    delivered = dict.fromkeys([*targets, *(rule.target for rule in settings.delays)])
    return rights + [Right("topic", topic, ("Write", "DescribeConfigs")) for topic in delivered]


def producer_rights(settings: Settings) -> list[Right]:
    """Return what a client needs that sends commands, waits for their results, and follows the history."""
    names = settings.topics
    return [
        *(Right("topic", source.name, ("Write",)) for source in settings.inputs),
        Right("topic", names.results, ("Read",)),
        Right("topic", names.history, ("Read",)),
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


def acl_commands(rights: Sequence[Right], principal: str, servers: str) -> list[str]:
    """Return the commands that give somebody rights: `kafka-acls.sh ...`, one a resource."""
    return [_acl_command(right, principal, servers) for right in rights]


def _acl_command(right: Right, principal: str, servers: str) -> str:
    words = ["kafka-acls.sh", "--bootstrap-server", servers, "--command-config", "admin.properties", "--add"]
    words += ["--allow-principal", _quoted(principal)]
    for operation in right.operations:
        words += ["--operation", operation]
    words += ["--cluster"] if right.resource == "cluster" else [f"--{right.resource}", _quoted(right.name)]
    if right.pattern == "prefixed":
        words += ["--resource-pattern-type", "prefixed"]
    return " ".join(words)


def _quoted(word: str) -> str:
    return f"'{word}'" if set(word) & set(" ,~/*$&;()") else word
