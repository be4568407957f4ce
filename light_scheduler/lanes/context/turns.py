"""Round-robin turns of partitions, for tenants whose rules distribute messages that way."""

from __future__ import annotations

from light_scheduler.model import ScheduleCommand, Target
from light_scheduler.wire.partitioner import key_with_hash, partition_for

_MOST_TOPICS = 1_000
"""Maximum number of topics of a tenant with turns. Beyond that, the oldest ones start over."""
_ANY_START = 2**31


class Turns:
    """Keys that choose the partitions of a topic in turn, per tenant and topic, for any number of partitions.

    The lanes of a worker share them. They begin at a partition derived from the place of the first command, and start
    over when the worker starts. Turns taken by an aborted transaction are skipped.
    """

    def __init__(self) -> None:
        self._tenants: dict[str, dict[str, _Turn]] = {}  # only tenants with such a rule

    def key(self, command: ScheduleCommand) -> bytes:
        """Return the partition key for a tenant's next message."""
        turns, topic = self._tenants.setdefault(command.tenant, {}), command.target.topic
        if (turn := turns.get(topic)) is None:
            if len(turns) >= _MOST_TOPICS:
                del turns[next(iter(turns))]
            start = partition_for(b"%d-%d" % (command.partition, command.offset), _ANY_START)
            turn = turns[topic] = _Turn(start)
        return turn.key

    def accept(self, tenant: str, target: Target) -> None:
        """Go on to the next turn if an accepted schedule uses the key of this one."""
        turn = self._tenants.get(tenant, {}).get(target.topic)
        if turn is not None and target.partition_key is turn.key:  # a stored schedule may have an equal, older key
            turn.end()


class _Turn:
    def __init__(self, number: int) -> None:
        self._number = number
        self.key = key_with_hash(number)

    def end(self) -> None:
        self._number = (self._number + 1) % _ANY_START
        self.key = key_with_hash(self._number)
