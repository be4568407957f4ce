"""Rights in Kafka, and the commands that grant them. Pure: does not ask a broker."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Resource = Literal["topic", "group", "transactional-id", "cluster"]
Pattern = Literal["literal", "prefixed"]
Operation = Literal["Read", "Write", "Describe", "DescribeConfigs", "Alter"]


@dataclass(frozen=True)
class Right:
    """Operations on a resource, or on all with a prefix (`prefixed`). Read and Write imply Describe."""

    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    pattern: Pattern = "literal"


def acl_commands(rights: Sequence[Right], principal: str, servers: str) -> list[str]:
    """Return the commands that grant rights to a principal: `kafka-acls.sh ...`, one for each right."""
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
    """Quote a name for a shell. Names of principals can contain any character."""
    quoted = shlex.quote(word)
    return f"'{word}'" if quoted == word and set(word) & set(",/") else quoted
