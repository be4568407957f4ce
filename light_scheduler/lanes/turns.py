"""Turns of partitions: where a tenant's messages to a topic go if its rules distribute them in turn."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from light_scheduler.wire.partitioner import key_with_hash

_MOST_KNOWN = 1_000


class Turns:
    """Keys that choose the partitions of a topic in turn, for each tenant and topic, whatever number of partitions.

    Those of a worker are shared by its lanes, and begin anew when it starts. Only the tenants and topics of the last
    messages are remembered.
    """

    def __init__(self) -> None:
        self._counts = lru_cache(_MOST_KNOWN)(lambda _tenant, _topic: count())

    def key(self, tenant: str, topic: str) -> bytes:
        """Return the partition key of the next message."""
        return key_with_hash(next(self._counts(tenant, topic)))
