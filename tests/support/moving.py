"""A commands topic that has grown from four partitions to twelve: what lanes know of it, and what they pass on."""

from __future__ import annotations

from itertools import count
from typing import Any

from aiokafka.structs import ConsumerRecord

from light_scheduler.model.partitioning import Partitioning
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import FORWARDED_FROM
from support import partition as supported
from support.partition import AT, HOUR, NAMES, TO_REMINDERS, Partition, due_at

BEFORE, AFTER = 4, 12
SECRET = b"of the workers"
GROWN = Partitioning(AFTER, BEFORE, running=frozenset(range(AFTER)), secret=SECRET)
MOVES = next(f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == 5)
"""A key that belonged to partition 1, and belongs to partition 5."""
STAYS = next(f"k{n}".encode() for n in count() if partition_for(f"k{n}".encode(), AFTER) == 1)
ONCE = [due_at(AT + HOUR), *TO_REMINDERS]
CANCEL = ("schedule-command", b"cancel")


class Known:
    """What a lane knows."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.partitioning = partitioning

    def of(self, topic: str) -> Partitioning:
        assert topic == NAMES.commands
        return self.partitioning


def grown(partition: Partition, partitioning: Partitioning = GROWN) -> None:
    partition.partitionings = Known(partitioning)


def record(partition: int, *headers: Any, key: bytes | None = MOVES, **fields: Any) -> ConsumerRecord:
    return supported.command(*headers, key=key, partition=partition, **fields)


def passed(partition: Partition, to: int, offset: int = 100) -> list[ConsumerRecord]:
    """Return what a partition has written for another one, as that reads it."""
    sent = [each for each in partition.sent(NAMES.commands) if each.partition == to]
    return [
        supported.command(*each.headers, key=each.key, value=each.value, partition=to, offset=offset + place)
        for place, each in enumerate(sent)
    ]


def mark(record: Any, name: str = FORWARDED_FROM) -> bytes | None:
    """Return what a header says, without its signature."""
    value = dict(record.headers).get(name)
    return value and value.rpartition(b":")[0]
