"""A plain Kafka Streams punctuator, the design of networknt's light-scheduler: a store that is checked at intervals.

It gets light-scheduler's commands, and stores due time, key and payload. Its store is ordered by due time, so that a
check only reads due schedules; networknt's scans the whole store.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from confluent_kafka import Consumer, TopicPartition

from light_scheduler.bench.footprint import disk_bytes
from light_scheduler.bench.producing import produce
from light_scheduler.bench.workload import Workload
from light_scheduler.host.jars import KAFKA_VERSION

from .arrivals import ReadArrivals
from .contestant import Workspace, await_that
from .java_peer import JavaPeer
from .toolbox import JVM_OPTIONS
from .topics import topic_bytes

PARTITIONS = 4
_ACCEPT_S = 120.0
_ANSWER_S = 10.0


class KafkaStreams(JavaPeer):
    title = "Kafka Streams punctuator"
    program = "PunctuatorPeer"
    properties: ClassVar[Mapping[str, object]] = {
        "punctuation_interval_ms": 100,
        "streams.processing.guarantee": "exactly_once_v2",
        "streams.num.stream.threads": 2,
        "streams.commit.interval.ms": 100,  # the default with exactly_once_v2
        # A restarted process need not wait until its session of 45 s has timed out.
        "streams.group.instance.id": "peer",
    }
    settings: ClassVar[Mapping[str, object]] = {"partitions": PARTITIONS, **properties, "jvm": JVM_OPTIONS}

    def __init__(self, place: Workspace) -> None:
        super().__init__(place)
        self._name = f"{place.folder.parent.name}-{place.folder.name}"
        self._commands = f"{self._name}-commands"

    @property
    def target(self) -> str:
        return f"{self._name}-target"

    @property
    def arrivals(self) -> ReadArrivals:
        return self._read

    def open_store(self) -> None:
        self._running.enter_context(self._place.stage.topics(PARTITIONS, self._commands, self.target))
        self._read = ReadArrivals(self._place.stage.bootstrap_servers, self.target)
        self._read.start()
        self._running.callback(self._read.close)

    def command(self) -> Sequence[str | Path]:
        return self.java(self._name, self._place.stage.bootstrap_servers, self._commands, self.target)

    def environment(self) -> dict[str, str]:
        return {}

    def submit(self, work: Workload) -> float:
        begun = time.monotonic()
        produce(self._place.stage.bootstrap_servers, self._commands, work, self._place.progress)
        self._await_processed()
        return time.monotonic() - begun

    def left(self) -> None:
        return None

    def store_bytes(self) -> int:
        broker = self._place.stage.broker_folder
        assert broker is not None, "there are topics"
        return disk_bytes(self.file("state")) + topic_bytes(broker, self._name)

    def versions(self) -> Mapping[str, str]:
        return {"kafka-streams": KAFKA_VERSION, "java": self._place.toolbox.java_version}

    def _await_processed(self) -> None:
        """Wait until everything up to the end of the commands has been read, stored and committed."""
        consumer = Consumer({"bootstrap.servers": self._place.stage.bootstrap_servers, "group.id": self._name})
        partitions = [TopicPartition(self._commands, number) for number in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(partition, timeout=_ANSWER_S)[1] for partition in partitions]

        def is_processed() -> bool:
            committed = consumer.committed(partitions, timeout=_ANSWER_S)
            return all(place.offset >= end for place, end in zip(committed, ends, strict=True))

        try:
            await_that(is_processed, "Kafka Streams' taking work", _ACCEPT_S)
        finally:
            consumer.close()
