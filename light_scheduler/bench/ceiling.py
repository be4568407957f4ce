"""The client's ceiling: how fast the Kafka client alone commits a worker's transactions, on the same broker.

Four transactional ids in one process commit transactions concurrently, each one after the other. A transaction holds
the maximum number of events of a lane, with the records that each event needs, and input offsets. The records are the
worker's own, made beforehand. Nothing is read, decided, stored or recorded in history.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.clock import SystemClock
from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.lanes.cycle.steps import MAX_FIRING_BYTES

from .progress import Progress
from .records import BenchRecord, RecordMaker, Shape
from .stage import Stage
from .workload import DueTimes, Payloads, Workload

LANES = 4
SECONDS = 4.0
"""How long a lane begins new transactions."""

_COMMANDS, _CHANGELOG, _TARGET = "ceiling-commands", "ceiling-changelog", "ceiling-target"
_TRANSACTION_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class LaneShare:
    """The result of one lane: events committed, start and end (s of one clock)."""

    events: int
    begun: float
    ended: float


def ceiling_per_s(stage: Stage, shape: Shape, payload_bytes: int, progress: Progress) -> float:
    """Measure for some seconds. Return events per second. Raises BrokerError."""
    progress.phase("ceiling of the client")
    with stage.topics(LANES, _COMMANDS, _CHANGELOG, _TARGET):
        try:
            return added_up(asyncio.run(_measure(stage.connection, shape, payload_bytes)))
        except KafkaError as error:
            raise BrokerError(f"the ceiling of the client could not be measured: {error!r}") from error


def added_up(shares: Sequence[LaneShare]) -> float:
    """Return events per second of all lanes together. Each counts over its own time, since they do not end at the same
    instant."""
    return sum(share.events / (share.ended - share.begun) for share in shares)


def events_per_transaction(payload_bytes: int) -> int:
    """Return how many events a lane takes at once: fewer if their payloads are large."""
    return min(MOST, MAX_FIRING_BYTES // max(1, payload_bytes))


async def _measure(connection: Address, shape: Shape, payload_bytes: int) -> list[LaneShare]:
    events = events_per_transaction(payload_bytes)
    workload = Workload(
        messages=LANES * events, payloads=Payloads(payload_bytes, 0), target=_TARGET, due=DueTimes(SystemClock().now())
    )
    maker = RecordMaker(workload, _COMMANDS)
    records = [
        maker.records(shape, number * events, events, changelog=(_CHANGELOG, number), target=(_TARGET, number))
        for number in range(LANES)
    ]
    lanes = [_Lane(connection, number, records[number], events) for number in range(LANES)]
    try:
        for lane in lanes:
            await lane.producer.fence()
        await asyncio.gather(*(lane.commit() for lane in lanes))  # warms up connections and Java's compiler
        until = time.monotonic() + SECONDS
        return await asyncio.gather(*(lane.commit_until(until) for lane in lanes))
    finally:
        for lane in lanes:
            await lane.producer.discard()


class _Lane:
    def __init__(self, connection: Address, number: int, records: list[BenchRecord], events: int) -> None:
        self.producer = TransactionalProducer(KafkaClients(connection, _TRANSACTION_TIMEOUT_MS), f"ceiling-{number}")
        self._number = number
        self._clock = SystemClock()
        self._offset = 0
        self._records = records
        self._events = events

    async def commit_until(self, deadline: float) -> LaneShare:
        events, begun = 0, time.monotonic()
        while time.monotonic() < deadline:
            await self.commit()
            events += self._events
        return LaneShare(events, begun, time.monotonic())

    async def commit(self) -> None:
        batches = RecordBatches(self._clock.now())
        for partition, key, value, headers in self._records:
            batches.add(partition, key, value, headers)
        self._offset += self._events
        await self.producer.commit(batches, "ceiling", {TopicPartition(_COMMANDS, self._number): self._offset})
