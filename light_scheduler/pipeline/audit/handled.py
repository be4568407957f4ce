"""How far commands have been carried out.

A lane carries out the commands of a tenant in the order of their log. Those of another tenant do not wait for commands
that a quota delays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Queue(NamedTuple):
    """The commands of a tenant in a partition of a commands topic."""

    topic: str
    partition: int
    tenant: str


Handled = Mapping[Queue, int]
"""The offset of the last command of each queue that was surely carried out."""


def nested_by_tenant(handled: Handled) -> dict[str, Any]:
    """Return offsets as a watermark has them: `{topic: {partition: {tenant: offset}}}`."""
    by_topic: dict[str, Any] = {}
    for (topic, partition, tenant), offset in sorted(handled.items()):
        by_topic.setdefault(topic, {}).setdefault(str(partition), {})[tenant] = offset
    return by_topic


def flat_by_tenant(by_topic: Mapping[str, Mapping[str, Any]]) -> dict[Queue, int]:
    """Read them back. Those of older versions are of all tenants together and left out: they tell of none alone."""
    return {
        Queue(topic, int(partition), tenant): offset
        for topic, partitions in by_topic.items()
        for partition, tenants in partitions.items()
        if isinstance(tenants, dict)
        for tenant, offset in tenants.items()
    }
