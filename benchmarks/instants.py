"""Measures the lowest lateness at full seconds that a Kafka client alone reaches, for comparison with `bench steady
--grid 1s`.

    python benchmarks/instants.py

Four transactional producers (librdkafka) do only the Kafka part of four lanes: shortly before each full second they
send messages, state and history in a transaction, wait for the acknowledgements, and commit on time. A read_committed
consumer records when it receives each message. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import threading
import time

from confluent_kafka import Producer

from light_scheduler.bench.chaos.reading import places, reader
from light_scheduler.bench.deliveries import Lateness
from light_scheduler.bench.machine import machine, versions
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.settings import Settings

LANES = 4
SECOND_MS = 1_000
MESSAGES = 1_000
"""Messages per second, over all lanes."""

PAYLOAD, EVENT = bytes(200), bytes(150)
AHEAD_MS = Settings.stage_ahead
WARM_UP = 10
"""Seconds that do not count, while Java compiles."""

SILENT = logging.Logger("benchmarks.instants", logging.CRITICAL + 1)


def wait_until(at_ms: int) -> None:
    time.sleep(max(0, at_ms - SystemClock().now()) / 1_000)


class Lane:
    """A producer and its partitions: one of each topic."""

    def __init__(self, servers: str, number: int) -> None:
        settings = {"bootstrap.servers": servers, "transactional.id": f"lane-{number}", "linger.ms": 1}
        self._producer = Producer(settings, logger=SILENT)
        self._producer.init_transactions(30)
        self._number = number

    def fire(self, instant: int) -> None:
        """Fill a transaction before an instant (UTC epoch ms), and commit it then."""
        wait_until(instant - AHEAD_MS)
        self._producer.begin_transaction()
        for number in range(MESSAGES // LANES):
            self._producer.produce("target", PAYLOAD, partition=self._number, timestamp=instant)
            self._producer.produce("state", None, b"%d" % number, partition=self._number)
            self._producer.produce("history", EVENT, partition=self._number)
        self._producer.flush()
        wait_until(instant)
        self._producer.commit_transaction()


class Reader(threading.Thread):
    """Reads the target topic until it has seen a number of messages. Counts those that are due from an instant on."""

    def __init__(self, servers: str, messages: int, since: int) -> None:
        super().__init__(daemon=True)
        self.lateness = Lateness()
        self._left = messages
        self._since = since
        self._consumer = reader(servers)
        self._consumer.assign(places(self._consumer, "target"))

    def run(self) -> None:
        clock = SystemClock()
        while self._left:
            messages = self._consumer.consume(1, 0.2) + self._consumer.consume(MESSAGES, 0)
            now = clock.now()
            for message in messages:
                if message.error() is None:
                    self._left -= 1
                    due = message.timestamp()[1]
                    if due >= self._since:
                        self.lateness.add(now - due)
        self._consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="How long the load lasts.")
    seconds = parser.parse_args().seconds
    found_on = machine()
    with EmbeddedBroker() as broker:
        for topic in ("target", "state", "history"):
            create_topic(broker.bootstrap_servers, topic, LANES)
        lanes = [Lane(broker.bootstrap_servers, number) for number in range(LANES)]
        first = (SystemClock().now() // SECOND_MS + 2) * SECOND_MS
        instants = range(first, first + (WARM_UP + seconds) * SECOND_MS, SECOND_MS)
        consumer = Reader(broker.bootstrap_servers, MESSAGES * len(instants), first + WARM_UP * SECOND_MS)
        consumer.start()
        threads = [threading.Thread(target=lambda lane=lane: list(map(lane.fire, instants))) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in [*threads, consumer]:
            thread.join()
    document = {"seconds": seconds, "ahead_ms": AHEAD_MS, "machine": found_on, "versions": versions()}
    json.dump({**document, "figures": consumer.lateness.figures()}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
