"""Compares the cost of an event when two workers share the partitions with that of one worker which has all of them.

    python benchmarks/scaling.py                two workers
    python benchmarks/scaling.py --processes    one node of two processes

The same schedules, alternately with one worker and with two: all are accepted as they arrive, then all are due at one
instant. Measures processor time of the workers per schedule, from the first command sent to the last accepted, and from
just before the instant to the last firing. On a machine with spare cores, equal cost means twice the rate.

The workers have one core, one or two of them, and the broker and the measurement have the others. Otherwise, on a small
machine, two workers would disturb the broker more than one does, and that would be measured. With `--crowded`,
everything may run on every core. Linux only.

Prints one JSON document: the median, minimum and maximum of all trials, and the ratio of two workers to one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import psutil
from rich.console import Console

from light_scheduler.bench.figures import Figure
from light_scheduler.bench.looks import INTERVAL_S, Look, info_of, look
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.host.ports import free_port

PARTITIONS = 4
PAYLOAD_BYTES = 200
LEAD_MS = 4_000
ASSUMED_PER_MS = 8
"""Lower bound for commands that are sent and accepted per millisecond."""

QUIET_MS = 500
TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0


class Crew:
    """Workers that share the partitions of an application. One may be a node of several processes."""

    def __init__(self, workers: list[WorkerProcess]) -> None:
        self._workers = workers

    def start(self, cores: set[int]) -> None:
        """Start all workers on some cores, and wait until each runs its part."""
        with on_cores(cores):
            for worker in self._workers:
                worker.start()
        for worker in self._workers:
            worker.wait_ready()
        wait_until(self._is_shared_out, timeout=TIMEOUT_S, what="each worker with its part of the partitions")

    def _is_shared_out(self) -> bool:
        infos = [info_of(worker) for worker in self._workers]
        part = PARTITIONS // len(self._workers)
        return all(info is not None and [lane.state for lane in info.lanes] == ["running"] * part for info in infos)

    def until(self, counted: Callable[[Look], int], count: int) -> None:
        """Wait until the workers have done `count` events in total."""
        wait_until(
            lambda: sum(map(counted, self._looks())) >= count,
            timeout=TIMEOUT_S,
            what=f"{count} events",
            interval=INTERVAL_S,
        )

    def cpu_s(self) -> float:
        """Return the total processor time of the workers and their child processes."""
        started = (psutil.Process(worker.pid) for worker in self._workers)
        times = [each.cpu_times() for worker in started for each in (worker, *worker.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def _looks(self) -> list[Look]:
        return [seen for worker in self._workers if (seen := look(worker)) is not None]


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Start processes that run only on some cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def crew_of(application: BenchApplication, count: int, *, as_node: bool) -> Iterator[Crew]:
    """Give an application `count` workers, or processes of one worker. Stop the additional ones at the end."""
    folder = application.settings.data_dir.parent
    if as_node:
        settings = replace(application.settings, processes=count)
        node = WorkerProcess(settings, folder / "node.log", remove_when_orphaned=folder)
        try:
            yield Crew([node])
        finally:
            node.stop(timeout=STOP_TIMEOUT_S)
        return
    others = [
        WorkerProcess(
            replace(
                application.settings,
                data_dir=folder / f"state-{number}",
                web_port=free_port(),
                instance_id=f"{application.settings.app_id}-worker-{number}",
            ),
            folder / f"worker-{number}.log",
            remove_when_orphaned=folder,
        )
        for number in range(1, count)
    ]
    try:
        yield Crew([application.worker, *others])
    finally:
        for worker in others:
            worker.stop()


def cost(stage: Stage, workers: int, messages: int, cores: set[int], *, as_node: bool) -> dict[str, float]:
    """Return the workers' processor time for accepting and firing, in us per event."""
    with stage.application() as application, crew_of(application, workers, as_node=as_node) as crew:
        crew.start(cores)
        clock = SystemClock()
        due = clock.now() + LEAD_MS + messages // ASSUMED_PER_MS
        workload = Workload(
            messages=messages, payloads=Payloads(PAYLOAD_BYTES, 1), target=application.target, due=DueTimes(due)
        )
        begun = crew.cpu_s()
        with Progress(Console(quiet=True)) as progress:
            produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
        crew.until(lambda seen: seen.accepted, messages)
        accepted = crew.cpu_s()
        wait_ms = due - QUIET_MS - clock.now()
        if wait_ms < 0:
            raise TimeoutError(f"{messages} schedules were not accepted before they were due: use fewer --messages")
        time.sleep(wait_ms / 1_000)
        before = crew.cpu_s()
        crew.until(lambda seen: seen.firings, messages)
        return {
            "accepting_us": (accepted - begun) * 1e6 / messages,
            "firing_us": (crew.cpu_s() - before) * 1e6 / messages,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--processes", action="store_true", help="processes of one node in place of workers")
    parser.add_argument("--crowded", action="store_true", help="workers and broker may run on every core")
    options = parser.parse_args()
    everywhere = os.sched_getaffinity(0)
    workers_on = everywhere if options.crowded else {min(everywhere)}
    others_on = everywhere if options.crowded else everywhere - workers_on or everywhere
    found_on = machine()
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    with on_cores(others_on), Stage(PARTITIONS) as stage:
        for trial in range(options.trials):
            for workers in found:
                sys.stderr.write(f"trial {trial + 1} of {options.trials}: {workers} workers\n")
                found[workers].append(cost(stage, workers, options.messages, workers_on, as_node=options.processes))
    figures = {
        f"{name}_{workers}": Figure(statistics.median(values), min(values), max(values), "us")
        for workers, trials in found.items()
        for name in trials[0]
        for values in [[trial[name] for trial in trials]]
    }
    ratios = {name: figures[f"{name}_2"].median / figures[f"{name}_1"].median for name in found[1][0]}
    settings = {name: getattr(options, name) for name in ("messages", "trials", "processes", "crowded")}
    document = {**settings, "machine": found_on, "versions": versions()}
    whole = {**document, "figures": figures, "two_workers_to_one": ratios}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
