"""A commands topic that is deleted and created again, or takes only smaller records, while something waits for it.

What was in the logs of the deleted topic is lost with them, so the model of `model` cannot say what must follow. What
is judged instead: what waits in the state of lanes ends, no command is answered twice, and no lane is stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiokafka import TopicPartition

from light_scheduler.wire.delayed_state import decode_delayed
from light_scheduler.wire.events import correlation_id_of
from light_scheduler.wire.lane_marks import Origin, mark_of
from light_scheduler.wire.record import CommandRecord, UnsentRecord
from light_scheduler.wire.state import BULK_TOTAL_KIND, decode_bulk_total
from light_scheduler.wire.waiting_state import QUEUES, decode_waiting, is_of_partition, is_tenant_part

from .log import Record
from .names import COMMANDS, NAMES, REPLIES, TARGET
from .records import header, to
from .violation import Violation

if TYPE_CHECKING:
    from .world import World

OF_QUEUE = b"\x08"
"""What the keys of waiting and delayed records begin with."""


class Anew(NamedTuple):
    """What becomes of the commands topic `at` an instant (s): it is created again with so many partitions (0: not).

    From then on it takes batches of at most `max_bytes`.
    """

    at: float
    partitions: int
    max_bytes: int


@dataclass
class Expected:
    """The commands of a history, by number: those that must be answered, and those that may be.

    `ending` are bulk commands, by token, and partitions for whose reports none of them may wait at the end: they cannot
    have the command, or have delayed it.
    """

    sent: set[int] = field(default_factory=set)
    must: set[int] = field(default_factory=set)
    ending: set[tuple[str, int]] = field(default_factory=set)

    def send(self, number: int, *, is_for_good: bool) -> None:
        """A command is sent, to a topic that is not deleted afterwards if it `is_for_good`."""
        self.sent.add(number)
        if is_for_good:
            self.must.add(number)

    def wait(self, world: World) -> None:
        """The topic is created again: note what waits or is delayed in the state of lanes that go on."""
        for partition in range(len(world.partitions)):
            for key, value in states(world, partition).items():
                if not key.startswith(OF_QUEUE) or is_tenant_part(key):
                    continue
                if is_of_partition(key):
                    record = decode_waiting(value)
                    self._end(UnsentRecord(*record[:3]), int.from_bytes(key[2:6], "big"), is_for_log=True)
                else:
                    self._end(decode_delayed(value), partition, is_for_log=False)

    def _end(self, record: CommandRecord, partition: int, *, is_for_log: bool) -> None:
        """A record has to end that waits for a partition, or is delayed there. One that `is_for_log` may be news."""
        mark = mark_of(record)
        if is_for_log and (not isinstance(mark, Origin) or mark.is_elsewhere):
            return
        if isinstance(mark, Origin) and mark.token:
            self.ending.add((mark.token, partition))
        else:
            self.must.add(int(correlation_id_of(record.headers) or b""))


def states(world: World, partition: int) -> dict[bytes, bytes]:
    """Return the state of a partition as its commits have left it, by changelog key."""
    changes = [
        record
        for commit in world.kafka.commits
        for record in to(commit, NAMES.changelog(COMMANDS))
        if record.partition == partition
    ]
    last = {record.key or b"": record.value for record in changes}
    return {key: value for key, value in last.items() if value is not None}


def check_anew(world: World) -> None:
    """Raise Violation if something that waited has not ended, or anything happened twice."""
    expected = world.expected
    answers = Counter(int(correlation_id_of(record.headers) or b"-1") for record in _all(world, REPLIES))
    if twice := {number for number, times in answers.items() if times > 1 or number not in expected.sent}:
        raise Violation(f"answered more than once, or never sent: {sorted(twice)}")
    if silent := expected.must - answers.keys():
        raise Violation(f"never answered: {sorted(silent)}")
    firings = Counter(tuple(header(record, f"schedule-{name}") for name in _FIRING) for record in _all(world, TARGET))
    if twice_fired := {firing for firing, times in firings.items() if times > 1}:
        raise Violation(f"delivered more than once: {twice_fired}")
    for tp in world.partitions:
        _check_lane(world, tp)


_FIRING = ("tenant", "id", "version", "due", "source-partition", "source-offset")


def _check_lane(world: World, tp: TopicPartition) -> None:
    """Raise Violation unless a lane has read everything, and nothing waits in its state."""
    commands = world.kafka.log((tp.topic, tp.partition)).committed(0, 1 << 40)
    offset = world.kafka.group_offsets.get(tp, 0)
    if commands and offset != commands[-1].offset + 1:
        raise Violation(f"lane {tp.partition} is at {offset}, and there is a command at {commands[-1].offset}")
    for key, value in states(world, tp.partition).items():
        if key.startswith(QUEUES):
            raise Violation(f"lane {tp.partition} has never sent {key!r}")
        if key.startswith(OF_QUEUE) and is_of_partition(key):
            raise Violation(f"lane {tp.partition} has a queue's {key!r} without the queue")
        if key.startswith(BULK_TOTAL_KIND):
            total = decode_bulk_total(value)
            lacks = [each for each in total.awaited if (total.token, each) in world.expected.ending]
            if lacks:
                raise Violation(f"lane {tp.partition} waits for reports of {lacks}")


def _all(world: World, topic: str) -> Iterator[Record]:
    return (record for commit in world.kafka.commits for record in to(commit, topic))
