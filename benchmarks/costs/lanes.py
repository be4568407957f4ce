"""Topics in the state that lanes produce, without a worker: real cycles over in-memory tables, written directly to the
broker.

So a history of hours is created in minutes. The commands of a chunk are recorded at one instant and fire a minute
later. One in SERIES is a series that fires once more, a minute after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Protocol

import pyarrow as pa
from confluent_kafka import Producer
from pyspark import TaskContext

from light_scheduler.engine import FiringRules, Limits
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.cycle.budget import TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.model import Headers, TopicNames
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire import UnsentRecord, dialect_named, partition_for

from .cost import PARTITIONS, PAYLOAD, TARGET

CHUNK = 5_000
SERIES = 100
CHUNK_MS = 150_000
"""Time between the commands of one chunk and the next."""

DUE_MS = 60_000
LIMITS = Limits(1_000_000, 512)
_MOST_BYTES = 1 << 30
_FLUSH_S = 120.0
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 100_000,
    "compression.type": "lz4",
    "delivery.report.only.error": True,
}


class LaneTask:
    """The work of a Spark task: it acts as the lane with its own number, for ids in a column `id`. Sent as a pickle."""

    def __init__(self, bootstrap_servers: str, names: TopicNames, start: int) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._names = names
        self._start = start

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "Spark calls it"
        log = _Log(self._bootstrap_servers, {self._names.commands, self._names.history, TARGET})
        lane = Lane(self._names, task.partitionId(), self._start, log)
        for batch in batches:
            for first in range(0, batch.num_rows, CHUNK):
                lane.live_through(batch.column("id")[first : first + CHUNK].to_pylist())
        log.finish()
        yield pa.RecordBatch.from_pydict({"commands": pa.array([lane.offset], pa.int64())})


class Log(Protocol):
    """The destination of a lane's records; `now` (UTC epoch ms) is their time."""

    now: int

    def add(
        self,
        place: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        **_limits: object,
    ) -> None: ...

    def served(self) -> None:
        """Process delivery reports, raising failures."""


class Lane:
    """A lane, from an instant on (UTC epoch ms), whose records go to a log."""

    def __init__(self, names: TopicNames, number: int, start: int, log: Log) -> None:
        self._number = number
        self._commands = names.commands
        self._now = start
        self._log = log
        self._context = CycleContext(
            names.commands,
            number,
            dialect_named("native"),
            names,
            LIMITS,
            FiringRules(),
            _Topics(),
        )
        self._table = ScheduleTable(MemoryStore())
        self.offset = 0
        """Offset of the next command: this partition has no other writers."""

    def live_through(self, numbers: list[int]) -> None:
        """Send a chunk of commands, carry them out, and fire everything."""
        self._cycle(self._now, [self._send(number) for number in numbers])
        for turn in (1, 2):
            self._cycle(self._now + turn * DUE_MS + 1, [])
        self._now += CHUNK_MS

    def _send(self, number: int) -> UnsentRecord:
        headers: Headers = [("schedule-target-topic", TARGET.encode())]
        if number % SERIES:
            headers.append(("schedule-at", b"%d" % (self._now + DUE_MS)))
        else:
            headers += [("schedule-every", b"%d" % DUE_MS), ("schedule-max-firings", b"2")]
        record = UnsentRecord(self._key(number), PAYLOAD, headers, self._now, self._number, self.offset)
        self._log.now = self._now
        self._log.add((self._commands, self._number), record.key, record.value, headers)
        self.offset += 1
        return record

    def _key(self, number: int) -> bytes:
        """Return a key of this lane's partition, since other commands would be forwarded."""
        keys = (b"order-%010d-%d" % (number, salt) for salt in count())
        return next(key for key in keys if partition_for(key, PARTITIONS) == self._number)

    def _cycle(self, now: int, commands: list[UnsentRecord]) -> None:
        self._log.now = now
        overlay = Overlay(self._table)
        cycle = Cycle(self._context, overlay, self._log, now)  # type: ignore[arg-type]
        cycle.take_all([*reversed(commands)])
        cycle.fire_due(overlay.due(now, 2 * CHUNK, _MOST_BYTES), {}, TurnBudget(2 * CHUNK, _MOST_BYTES))
        overlay.apply(changelog_offset=0, complete_at=now)
        self._log.served()


class _Log:
    """Writes the records of a cycle to the broker, with the cycle's time, if they are for one of these topics."""

    def __init__(self, bootstrap_servers: str, topics: set[str]) -> None:
        self._failures: list[Any] = []
        told = {"on_delivery": lambda error, _message: self._failures.append(error)}
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, **_PRODUCER, **told})
        self._topics = topics
        self.now = 0

    def add(
        self,
        place: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        **_limits: object,
    ) -> None:
        topic, partition = place
        while topic in self._topics:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=self.now, headers=list(headers or []))
                return
            except BufferError:  # until some records are acknowledged
                self._producer.poll(0.05)

    def served(self) -> None:
        """Process delivery reports, raising failures."""
        self._producer.poll(0)
        assert not self._failures, self._failures[0]

    def finish(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        assert left == 0, f"{left} records were not acknowledged"
        assert not self._failures, self._failures[0]


class _Topics(dict[str, TargetTopic]):
    def __missing__(self, name: str) -> TargetTopic:
        return TargetTopic(PARTITIONS, 1 << 20, None, 0.0)
