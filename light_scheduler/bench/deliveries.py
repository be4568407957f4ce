"""Counts deliveries with a read_committed consumer of the target topic."""

from __future__ import annotations

import logging
import time
from array import array
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.errors import BrokerError

from .figures import percentile
from .progress import Progress
from .workload import Workload

_SILENT = logging.Logger("light_scheduler.bench.deliveries", logging.CRITICAL + 1)
_CHUNK = 10_000
_POLL_S = 0.2
_SHOWN_EVERY = 1_000
_PATIENCE_S = 10.0
MINUTE_MS = 60_000


class Delivery(NamedTuple):
    """A delivered record: its timestamp, the values of its headers, and when it was seen.

    All times are UTC epoch ms. `seen_at` is None if it was read long after. Missing headers are 0.
    """

    key: bytes | None
    payload: bytes | None
    timestamp: int
    due: int
    fired_at: int
    seen_at: int | None = None

    @property
    def visible_at(self) -> int:
        """When it was seen, or else when it was fired, which is before the commit."""
        return self.fired_at if self.seen_at is None else self.seen_at


class TargetTopic(NamedTuple):
    """A target topic, its partitions, and its brokers."""

    bootstrap_servers: str
    name: str
    partitions: int


class Count(Protocol):
    """Counts deliveries, and the ones that are still missing."""

    @property
    def missing(self) -> int: ...

    def add(self, delivery: Delivery) -> None: ...


class Lateness:
    """The lateness of deliveries."""

    def __init__(self) -> None:
        self._each = array("q")

    def add(self, ms: int) -> None:
        self._each.append(ms)

    def figures(self) -> dict[str, float]:
        """Return its percentiles; empty if there were no deliveries."""
        if not self._each:
            return {}
        ordered = sorted(self._each)
        return {
            "lateness_p50_ms": percentile(ordered, 50),
            "lateness_p99_ms": percentile(ordered, 99),
            "lateness_max_ms": ordered[-1],
        }


class _Firings:
    """Numbered firings: how often each arrived, how late, and which were early."""

    def __init__(self, expected: int) -> None:
        self._arrivals = array("I", bytes(4 * expected))
        self._duplicate = 0
        self._early = 0
        self.missing = expected
        self.lateness = Lateness()

    def arrived(self, number: int, due: int, delivery: Delivery) -> None:
        self.lateness.add(delivery.visible_at - due)
        self._early += min(delivery.fired_at, delivery.timestamp) < due
        if self._arrivals[number]:
            self._duplicate += 1
        else:
            self.missing -= 1
        self._arrivals[number] += 1

    def faults(self) -> dict[str, float]:
        """Return the numbers of faults."""
        return {"missing": self.missing, "duplicate": self._duplicate, "early": self._early}


class Tally(_Firings):
    """Deliveries of a workload's schedules, each of which fires once.

    A delivery with a wrong payload does not count as one of its schedule.
    """

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload.messages)
        self._workload = workload

    def add(self, delivery: Delivery) -> None:
        """Count a delivery."""
        number = self._workload.number_of(delivery.key)
        if number is not None and delivery.payload == self._workload.payload(number):
            self.arrived(number, self._workload.due_of(number), delivery)


class MinuteTally(_Firings):
    """Deliveries of a workload whose schedules all fire in each of `minutes` minutes, starting at one (UTC epoch
    ms)."""

    def __init__(self, workload: Workload, first: int, minutes: int) -> None:
        super().__init__(workload.messages * minutes)
        self._workload = workload
        self._first = first
        self._minutes = minutes

    def add(self, delivery: Delivery) -> None:
        """Count a delivery. Deliveries of other minutes are ignored."""
        number = self._workload.number_of(delivery.key)
        minute, within = divmod(delivery.due - self._first, MINUTE_MS)
        if number is None or delivery.payload != self._workload.payload(number):
            return
        if not within and 0 <= minute < self._minutes:
            self.arrived(minute * self._workload.messages + number, delivery.due, delivery)


def read_deliveries(
    topic: TargetTopic,
    tally: Count,
    progress: Progress,
    clock: Clock | None = None,
    patience_s: float = _PATIENCE_S,
) -> None:
    """Count everything in a topic, until nothing is missing and its end is reached.

    Waits for missing deliveries until none has arrived for `patience_s`: a transaction's marker is written after its
    commit was acknowledged. With a `clock`, the time when each delivery was seen is recorded. Raises BrokerError.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap_servers,
            "group.id": f"{topic.name}-count",  # librdkafka requires one; nothing is committed
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        },
        logger=_SILENT,
    )
    try:
        consumer.assign([TopicPartition(topic.name, partition, 0) for partition in range(topic.partitions)])
        _read(consumer, topic.partitions, tally, progress, clock, patience_s)
    except KafkaException as error:
        raise BrokerError(f"deliveries in {topic.name} could not be read: {error}") from error
    finally:
        consumer.close()


def _read(
    consumer: Consumer, partitions: int, tally: Count, progress: Progress, clock: Clock | None, patience_s: float
) -> None:
    ended: set[int | None] = set()
    records = shown = 0
    received_at = time.monotonic()
    while len(ended) < partitions or tally.missing:
        if clock is None:
            chunk, seen_at = consumer.consume(_CHUNK, _POLL_S), None
        else:  # a chunk arrives late: take the first record at once, and the fetched ones
            chunk = consumer.consume(1, _POLL_S)
            chunk += consumer.consume(_CHUNK, 0)
            seen_at = clock.now()
        for record in chunk:
            error = record.error()
            if error is None:
                ended.discard(record.partition())
                records += 1
                tally.add(_delivery(record, seen_at))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(record.partition())
            else:
                raise KafkaException(error)
        if records - shown >= _SHOWN_EVERY or not chunk:
            progress.done(records)
            shown = records
        if chunk:
            received_at = time.monotonic()
        elif time.monotonic() - received_at > patience_s:
            return


def _delivery(record: Any, seen_at: int | None) -> Delivery:
    due = fired_at = 0
    for name, value in record.headers() or ():
        if name == "schedule-fired-at":
            fired_at = int(value)
        elif name == "schedule-due":
            due = int(value)
    return Delivery(record.key(), record.value(), record.timestamp()[1], due, fired_at, seen_at)
