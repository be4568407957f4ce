"""What was delivered, counted by a read_committed consumer of the target topic."""

from __future__ import annotations

import logging
import time
from array import array
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from light_scheduler.errors import BrokerError

from .figures import percentile
from .progress import Progress
from .workload import Workload

_SILENT = logging.Logger("light_scheduler.bench.deliveries", logging.CRITICAL + 1)
_CHUNK = 10_000
_POLL_S = 0.2
_PATIENCE_S = 10.0


class Tally:
    """Deliveries of a workload's schedules: how often each came, how late, and what came too early.

    A delivery with another payload than was asked for is no delivery of its schedule.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._arrivals = array("I", bytes(4 * workload.messages))
        self._lateness = array("q")
        self._duplicate = 0
        self._early = 0
        self._missing = workload.messages

    @property
    def missing(self) -> int:
        """Schedules of which nothing came."""
        return self._missing

    def add(self, key: bytes | None, payload: bytes | None, timestamp: int, fired_at: int) -> None:
        """Count a delivery: the record's timestamp, and when its header says that it fired (both UTC epoch ms)."""
        number = self._workload.number_of(key)
        if number is None or payload != self._workload.payload(number):
            return
        self._lateness.append(fired_at - self._workload.due)
        self._early += min(fired_at, timestamp) < self._workload.due
        if self._arrivals[number]:
            self._duplicate += 1
        else:
            self._missing -= 1
        self._arrivals[number] += 1

    def figures(self) -> dict[str, float]:
        """Return the faults and, if anything came, its lateness."""
        faults: dict[str, float] = {"missing": self.missing, "duplicate": self._duplicate, "early": self._early}
        if not self._lateness:
            return faults
        ordered = sorted(self._lateness)
        return {
            "lateness_p50_ms": percentile(ordered, 50),
            "lateness_p99_ms": percentile(ordered, 99),
            "lateness_max_ms": ordered[-1],
            **faults,
        }


def read_deliveries(bootstrap_servers: str, topic: str, partitions: int, tally: Tally, progress: Progress) -> None:
    """Count everything in a topic that nobody writes to any more.

    A transaction's marker is written after its commit was answered, so an end that comes too soon is waited at for
    some seconds. Raises BrokerError.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"{topic}-count",  # librdkafka wants one; nothing is committed
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        },
        logger=_SILENT,
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        _read(consumer, partitions, tally, progress)
    except KafkaException as error:
        raise BrokerError(f"deliveries in {topic} could not be read: {error}") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, partitions: int, tally: Tally, progress: Progress) -> None:
    ended: set[int | None] = set()
    records = 0
    heard_at = time.monotonic()
    while len(ended) < partitions or tally.missing:
        chunk = consumer.consume(_CHUNK, _POLL_S)
        for record in chunk:
            error = record.error()
            if error is None:
                ended.discard(record.partition())
                records += 1
                tally.add(record.key(), record.value(), record.timestamp()[1], _fired_at(record))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(record.partition())
            else:
                raise KafkaException(error)
        progress.done(records)
        if chunk:
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at > _PATIENCE_S:
            return


def _fired_at(record: Any) -> int:
    for name, value in record.headers() or ():
        if name == "schedule-fired-at":
            return int(value)
    return 0  # without it a delivery counts as early
