"""Turns of partitions: where a tenant's messages to a topic go if its rules distribute them in turn."""

from __future__ import annotations

from functools import lru_cache

from light_scheduler.model import Target
from light_scheduler.wire.partitioner import key_with_hash

_MOST_KNOWN = 1_000


class Turns:
    """Keys that choose the partitions of a topic in turn, for each tenant and topic, whatever number of partitions.

    Those of a worker are shared by its lanes, and begin anew when it starts. Only the tenants and topics of the last
    messages are remembered. Turns that a transaction took which is aborted are passed over.
    """

    def __init__(self) -> None:
        self._turns = lru_cache(_MOST_KNOWN)(lambda _tenant, _topic: _Turn())

    def key(self, tenant: str, topic: str) -> bytes:
        """Return the partition key of the next message."""
        return self._turns(tenant, topic).key

    def accept(self, tenant: str, target: Target) -> None:
        """Have the next turn if a schedule that is accepted has the key of this one."""
        if target.partition_key is None:
            return
        turn = self._turns(tenant, target.topic)
        if target.partition_key is turn.key:  # one that is kept may have an equal key, from a turn before
            turn.end()


class _Turn:
    def __init__(self) -> None:
        self._number = 0
        self.key = key_with_hash(0)

    def end(self) -> None:
        self._number += 1
        self.key = key_with_hash(self._number)
