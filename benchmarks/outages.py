"""Measures outages under load when a worker or the broker dies: how long firings stop, for which lanes, and since when.

    python benchmarks/outages.py worker-restarted   # SIGKILL, restarted at once with its instance id
    python benchmarks/outages.py worker-lost        # SIGKILL, restarted only after others have taken over
    python benchmarks/outages.py broker             # SIGKILL, restarted after 8 s
    python benchmarks/outages.py rolling-restart    # SIGTERM and restart, one worker after the other

Two workers (a rolling restart: three) share four partitions, default settings. Schedules are due evenly; every lane
writes to every partition of the target topic, so an abandoned open transaction delays the firings of all lanes. A
read_committed consumer records when it receives each record. Prints one JSON document: for each figure the median,
minimum and maximum of all trials.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from rich.console import Console
from rich.progress import track

from light_scheduler.bench.chaos.reading import places, reader
from light_scheduler.bench.figures import p99_by_second
from light_scheduler.bench.looks import info_of
from light_scheduler.bench.machine import machine, versions
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.devkit.cluster import EmbeddedCluster
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.settings import Settings

PARTITIONS = 4
TARGET = "outages-target"
ROLLING = "rolling-restart"
RATE, ROLLING_RATE = 1_000, 2_000
"""Schedules due per second, so that each lane is in a transaction most of the time."""

ON_TIME_MS = 250
BROKER_DOWN_S = 8.0
BEFORE_S, AFTER_S = 4.0, 30.0
"""How long before the outage the load of a trial begins, and how long after the outage's start the load and the trial
end."""

SENT_PER_MS = 10
"""Lower bound for commands sent per ms, so that all of them are sent before the first is due."""


class Sight(NamedTuple):
    """A record as seen by the reader, at a time (s of the system's clock). `lane` is the partition of its command."""

    at: float
    lane: int
    late_ms: float


class Watch(threading.Thread):
    """Reads the target topic continuously."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self.sights: list[Sight] = []
        self._consumer = reader(servers)
        self._consumer.assign(places(self._consumer, TARGET))
        self._clock = SystemClock()

    def run(self) -> None:
        while True:
            for message in self._consumer.consume(1_000, 0.02):
                if message.error() is None:
                    now = self._clock.now()
                    headers = dict(message.headers() or ())
                    lane = int(headers["schedule-source-partition"] or 0)
                    self.sights.append(Sight(now / 1_000, lane, now - int(headers["schedule-due"] or 0)))

    def between(self, begun: float, ended: float, lanes: set[int]) -> list[Sight]:
        return [sight for sight in list(self.sights) if begun <= sight.at <= ended and sight.lane in lanes]


def longest_gap(sights: list[Sight], begun: float, ended: float) -> float:
    """Return the longest time (s) without a record."""
    times = [begun, *(sight.at for sight in sights), ended]
    return max(later - earlier for earlier, later in pairwise(times))


def late_until(sights: list[Sight], since: float) -> tuple[float, int]:
    """Return how long after an instant (s) records were on time again, and how many were late.

    They are on time when, in every following second, at most one in a hundred is late.
    """
    late = [sight.at - since for sight in sights if sight.late_ms > ON_TIME_MS and sight.at > since]
    seconds, late_in = Counter(int(sight.at - since) for sight in sights), Counter(map(int, late))
    last = max((second for second, count in late_in.items() if count > seconds[second] / 100), default=-1)
    caught_up = [at for at in late if int(at) <= last]
    return max(caught_up, default=0.0), len(late) - len(caught_up)


class Trials:
    """Outages one after the other on one cluster."""

    def __init__(self, broker: EmbeddedBroker, workers: list[WorkerProcess], rate: int) -> None:
        self._broker = broker
        self._workers = workers
        self._rate = rate
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
        self._clock = SystemClock()
        self._commands = workers[0].settings.topics.commands
        self._sent = 0
        self._watch = Watch(broker.bootstrap_servers)
        self._watch.start()

    def worker(self, *, is_restarted: bool) -> dict[str, float]:
        """Kill a worker. Return how long its own lanes and those of the other worker stopped."""
        victim = self._workers[0]
        self._await_shares()
        lanes = _lanes(victim)
        begun = self._load()
        victim.kill()
        killed = self._now()
        if is_restarted:
            victim.start()
        self._until_end(begun)
        ended = self._now() - 1.0
        if not is_restarted:
            victim.start()
        others = set(range(PARTITIONS)) - lanes
        return {
            "victims_lanes_still_s": longest_gap(self._watch.between(killed, ended, lanes), killed, ended),
            "other_lanes_still_s": longest_gap(self._watch.between(killed, ended, others), killed, ended),
        }

    def broker(self) -> dict[str, float]:
        """Kill the broker. Return when, after its return, firings resumed, and when they were on time again."""
        self._await_shares()
        begun = self._load()
        self._broker.kill()
        time.sleep(BROKER_DOWN_S)
        self._broker.start()
        returned = self._now()
        self._until_end(begun)
        lanes = [self._watch.between(returned, self._now(), {lane}) for lane in range(PARTITIONS)]
        late = [late_until(sights, returned) for sights in lanes]
        return {
            "first_firing_s": max(sights[0].at - returned for sights in lanes),
            "on_time_again_s": max(until for until, _ in late),
            "late_afterwards": sum(count for _, count in late),
        }

    def rolling(self) -> dict[str, float]:
        """Restart each worker in turn. Return the p99 of lateness in the worst second, before and since the
        restarts."""
        self._await_shares()
        begun = self._load()
        for worker in self._workers:
            worker.stop()
            worker.start()
            worker.wait_ready()
        took = self._now() - begun
        if took > AFTER_S:
            raise RuntimeError(f"the restarts took {took:.0f} s, and the load only {AFTER_S:.0f} s")
        self._until_end(begun)
        sights = self._watch.between(begun - BEFORE_S, self._now(), set(range(PARTITIONS)))
        seconds = p99_by_second((int(sight.at * 1_000 - sight.late_ms), int(sight.late_ms)) for sight in sights)
        return {
            "restarts_s": took,
            "worst_second_before_p99_ms": max(p99 for second, p99 in seconds.items() if second < int(begun)),
            "worst_second_p99_ms": max(p99 for second, p99 in seconds.items() if second >= int(begun)),
            "latest_ms": max(sight.late_ms for sight in sights),
        }

    def _load(self) -> float:
        """Send the commands of a trial and wait until the outage should begin. Return that instant (s of the clock)."""
        count = int(self._rate * (BEFORE_S + AFTER_S))
        first = self._clock.now() + count // SENT_PER_MS
        for number in range(count):
            self._sent += 1
            headers: list[tuple[str, str | bytes | None]] = [
                ("schedule-at", b"%d" % (first + number * 1_000 // self._rate)),
                ("schedule-target-topic", TARGET.encode()),
                ("schedule-target-partition", b"%d" % (number // PARTITIONS % PARTITIONS)),
            ]
            self._producer.produce(self._commands, b"x", b"o-%d" % self._sent, headers=headers)
            self._producer.poll(0)
        self._producer.flush(60)
        begin = first / 1_000 + BEFORE_S
        time.sleep(max(0.0, begin - self._now()))
        return begin

    def _until_end(self, begun: float) -> None:
        time.sleep(max(0.0, begun + AFTER_S - self._now()))

    def _await_shares(self) -> None:
        """Wait until the workers share the partitions evenly."""
        least = PARTITIONS // len(self._workers)
        deadline = time.monotonic() + 60
        while sum(shares := [len(_lanes(worker)) for worker in self._workers]) != PARTITIONS or min(shares) < least:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the workers do not share the partitions evenly: {shares}")
            time.sleep(0.2)

    def _now(self) -> float:
        return self._clock.now() / 1_000


def _lanes(worker: WorkerProcess) -> set[int]:
    info = info_of(worker)
    return set() if info is None else {lane.partition for lane in info.lanes if lane.state == "running"}


def figures_of(found: list[dict[str, float]]) -> dict[str, dict[str, float | str]]:
    """Return each figure over all trials."""
    return {
        name: {
            "median": statistics.median(values),
            "min": min(values),
            "max": max(values),
            "unit": next((unit for unit in ("ms", "s") if name.endswith(f"_{unit}")), "count"),
        }
        for name in found[0]
        for values in [[round(trial[name], 2) for trial in found]]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outage", choices=("worker-restarted", "worker-lost", "broker", ROLLING))
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    is_rolling = options.outage == ROLLING
    rate = ROLLING_RATE if is_rolling else RATE
    found_on = machine()
    with (
        tempfile.TemporaryDirectory(prefix="light-scheduler-outages-") as name,
        EmbeddedCluster() as kafka,
    ):
        (broker,) = kafka.nodes
        workers = [
            WorkerProcess(
                Settings(
                    app_id="outages",
                    broker=f"kafka://{broker.bootstrap_servers}",
                    data_dir=Path(name) / f"worker-{number}",
                    web_port=free_port(),
                    instance_id=f"worker-{number}",
                ),
                Path(name) / f"worker-{number}.log",
                remove_when_orphaned=Path(name),
            )
            for number in range(3 if is_rolling else 2)
        ]
        create_topics(workers[0].settings)
        create_topic(broker.bootstrap_servers, TARGET, PARTITIONS)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.wait_ready()
            trials = Trials(broker, workers, rate)
            kinds: dict[str, Callable[[], dict[str, float]]] = {
                "worker-restarted": lambda: trials.worker(is_restarted=True),
                "worker-lost": lambda: trials.worker(is_restarted=False),
                "broker": trials.broker,
                ROLLING: trials.rolling,
            }
            steps = track(range(options.trials), description=options.outage, console=Console(stderr=True))
            found = [kinds[options.outage]() for _ in steps]
        finally:
            for worker in workers:
                worker.kill()
    document = {"outage": options.outage, "trials": options.trials, "rate": rate, "machine": found_on}
    json.dump({**document, "versions": versions(), "figures": figures_of(found)}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
