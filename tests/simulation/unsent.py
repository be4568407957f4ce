"""What waits in the state of a lane for partitions that take nothing, as commits tell of it."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field

from light_scheduler.wire.delayed_state import DELAYED_KIND
from light_scheduler.wire.probe import is_of_probe
from light_scheduler.wire.waiting_state import decode_waiting, is_of_partition, is_tenant_part

from .lending import is_lending
from .log import Record, Transaction
from .records import Sent, place, to
from .violation import Violation

_ABOVE = 1 << 40
"""Above the offsets of all logs: that of a record which is not in a log yet is its number, and so much for its lane."""


@dataclass
class Unsent:
    """The queues of lane `number`, by the partition that they are for: (changelog key, record)."""

    number: int
    queues: dict[int, deque[tuple[bytes, Record]]] = field(default_factory=dict)

    def written(self, commit: Transaction, changelog: str, topic: str) -> tuple[list[Record], list[tuple[Sent, Sent]]]:
        """Return what a commit has for other partitions, whether it is sent or waits, but not what had waited.

        Of that it returns which place it had, and which it has. Raises Violation unless it is what waited first.
        """
        written, arrived = to(commit, topic), list[tuple[Sent, Sent]]()
        kept = [record for record in commit.records if record.topic == changelog and _is_of_queue(record.key or b"")]
        for partition, key in [(_partition_in(each), each.key) for each in kept if each.value is None]:
            queue = self.queues.get(partition, deque())
            sent = next((each for each in written if each.partition == partition and not _may_overtake(each)), None)
            if not queue or queue[0][0] != key or sent is None or _content(sent) != _content(queue[0][1]):
                raise Violation(f"{sent} was sent to partition {partition}; {key!r} of {queue} left")
            written.remove(sent)
            arrived.append((place(queue.popleft()[1]), place(sent)))
        if late := [each for each in written if self.queues.get(each.partition) and not _may_overtake(each)]:
            raise Violation(f"{late} overtake {self.queues}")
        for each in kept:
            if each.value is not None:
                offset = struct.unpack(">Q", (each.key or b"")[-8:])[0] + _ABOVE * (1 + self.number)
                record = Record(topic, _partition_in(each), offset, each.timestamp, *decode_waiting(each.value)[:3])
                self.queues.setdefault(record.partition, deque()).append((each.key or b"", record))
                written.append(record)
        return written, arrived

    def finish(self) -> None:
        """At the end nothing waits."""
        if any(self.queues.values()):
            raise Violation(f"never sent: {self.queues}")


def _is_of_queue(key: bytes) -> bool:
    return key.startswith(DELAYED_KIND) and is_of_partition(key) and not is_tenant_part(key)


def _partition_in(kept: Record) -> int:
    return int.from_bytes((kept.key or b"")[2:6], "big")


def _content(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    return record.key, record.value, list(map(tuple, record.headers))


def _may_overtake(record: Record) -> bool:
    """Return whether a record has no order among those that are passed on."""
    return is_lending(record) or is_of_probe(record)
