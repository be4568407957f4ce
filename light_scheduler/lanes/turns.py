"""Turns of partitions: where a tenant's messages to a topic go if its rules distribute them in turn."""

from __future__ import annotations

from light_scheduler.model import ScheduleCommand, Target
from light_scheduler.wire.partitioner import key_with_hash, partition_for

_MOST_TOPICS = 1_000
"""Topics of a tenant whose turns are known. With more, those that began first begin anew."""
_ANY_START = 2**31


class Turns:
    """Keys that choose the partitions of a topic in turn, for each tenant and topic, whatever number of partitions.

    Those of a worker are shared by its lanes. They begin anywhere, by the place of the first command, and anew when the
    worker starts. Turns that a transaction took which is aborted are passed over.
    """

    def __init__(self) -> None:
        self._tenants: dict[str, dict[str, _Turn]] = {}  # only tenants with such a rule

    def key(self, command: ScheduleCommand) -> bytes:
        """Return the partition key of a tenant's next message."""
        turns, topic = self._tenants.setdefault(command.tenant, {}), command.target.topic
        if (turn := turns.get(topic)) is None:
            if len(turns) >= _MOST_TOPICS:
                del turns[next(iter(turns))]
            start = partition_for(b"%d-%d" % (command.partition, command.offset), _ANY_START)
            turn = turns[topic] = _Turn(start)
        return turn.key

    def accept(self, tenant: str, target: Target) -> None:
        """Have the next turn if a schedule that is accepted has the key of this one."""
        turn = self._tenants.get(tenant, {}).get(target.topic)
        if turn is not None and target.partition_key is turn.key:  # what is kept may have an equal key of an older turn
            turn.end()


class _Turn:
    def __init__(self, number: int) -> None:
        self._number = number
        self.key = key_with_hash(number)

    def end(self) -> None:
        self._number = (self._number + 1) % _ANY_START
        self.key = key_with_hash(self._number)
