"""Fair: one tenant has very many schedules due at one instant; how late are the few, steady ones of another?

Measures the lateness of the other tenant's firings that are due while the crowd is being delivered, as a live
read_committed consumer sees them. Faults of both are counted afterwards, with the worker stopped.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from rich.console import Console

from light_scheduler.bench.deliveries import Delivery, Lateness, Tally, TargetTopic, read_deliveries
from light_scheduler.bench.looks import Look, Span, follow, span_of
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.scenarios.burst import lead_ms
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

_AHEAD_MS = 2_000  # the steady ones begin before the crowd
_WARM_UP_MS = 1_000  # between the consumer's start and the first firing
_ATTEMPTS = 3


class Steady(Tally):
    """Deliveries of the steady tenant, and the lateness of each."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._seen: list[tuple[int, int]] = []

    def arrived(self, number: int, due: int, delivery: Delivery) -> None:
        super().arrived(number, due, delivery)
        self._seen.append((due, delivery.visible_at - due))

    def lateness_between(self, first: int, last: int) -> Lateness:
        """Return the lateness of firings due between two instants (UTC epoch ms)."""
        lateness = Lateness()
        for due, late in self._seen:
            if first <= due <= last:
                lateness.add(late)
        return lateness


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round. Repeat it with more time if not everything was accepted before the first was due."""
    for attempt in range(_ATTEMPTS):
        with stage.application() as application, stage.topics(options.partitions, steady_target(application)):
            found = _play_once(application, options, lead_ms(options.messages, attempt), progress)
        if found is not None:
            return found
    raise SchedulerError(f"{options.messages} schedules were not accepted in time: measure with fewer --messages")


def steady_target(application: BenchApplication) -> str:
    """Return the steady tenant's target topic, whose consumer sees nothing of the crowd."""
    return f"{application.target}-steady"


def _workloads(application: BenchApplication, options: Options, due: int) -> tuple[Workload, Workload]:
    """Return the workloads of the crowd and of the steady tenant. The steady one begins at `due` (UTC epoch ms)."""
    crowd = Workload(
        messages=options.messages,
        payloads=Payloads(options.payload_bytes, options.seed),
        target=application.target,
        due=DueTimes(due + _AHEAD_MS),
        namespace=Namespace("crowd"),
    )
    steady = Workload(
        messages=options.rate * options.seconds,
        payloads=Payloads(options.payload_bytes, options.seed + 1),
        target=steady_target(application),
        due=DueTimes(due, options.rate),
        namespace=Namespace("steady"),
    )
    return crowd, steady


def _play_once(
    application: BenchApplication, options: Options, lead: int, progress: Progress
) -> dict[str, float] | None:
    """Return the figures of a round; None if there was too little time."""
    worker, clock = application.worker, SystemClock()
    servers, commands = application.bootstrap_servers, application.settings.topics.commands
    progress.phase("starting the worker")
    worker.start()
    worker.wait_ready()
    crowd, steady = _workloads(application, options, clock.now() + lead)
    progress.phase("sending commands", options.messages)
    for workload in (steady, crowd):
        produce(servers, commands, workload, progress)
    progress.phase("accepting", options.messages)
    follow(worker, lambda seen: seen.carried_out, crowd.messages + steady.messages, progress)
    wait_ms = steady.due - _WARM_UP_MS - clock.now()
    if wait_ms < 0:
        return None
    progress.phase("waiting for the instant")
    time.sleep(wait_ms / 1_000)
    crowds_topic = TargetTopic(servers, application.target, options.partitions)
    steady_topic = TargetTopic(servers, steady_target(application), options.partitions)
    live = Steady(steady)
    silent = Progress(Console(quiet=True))
    reading = threading.Thread(target=read_deliveries, args=(steady_topic, live, silent, clock))
    reading.start()
    began = time.monotonic() + (steady.due - clock.now()) / 1_000

    def of_the_crowd(seen: Look) -> int:
        """Count the crowd's firings, assuming that the steady ones are on time: they are only fractions of a second
        late."""
        return seen.firings - min(max(0, int((seen.at - began) * options.rate)), steady.messages)

    progress.phase("firing", options.messages)
    looks = follow(worker, of_the_crowd, options.messages - options.rate, progress)
    ended = clock.now()
    progress.phase("firing the rest")
    reading.join()
    worker.stop()
    if ended > steady.due + options.seconds * 1_000:
        raise SchedulerError("the crowd took longer than the steady ones: measure with more --seconds")
    progress.phase("counting deliveries", options.messages)
    faults: Counter[str] = Counter()
    for topic, workload in ((crowds_topic, crowd), (steady_topic, steady)):
        settled = Tally(workload)
        read_deliveries(topic, settled, progress)
        faults.update(settled.faults())
    return {**speed(span_of(looks, of_the_crowd)), **live.lateness_between(crowd.due, ended).figures(), **faults}


def speed(span: Span) -> dict[str, float]:
    """Return rate and cost of the crowd's firings."""
    found: dict[str, float] = {"firings_per_s": span.per_s}
    if span.cpu_us_per_event is not None:
        found["worker_cpu_us_per_event"] = span.cpu_us_per_event
    return found


SCENARIO = Scenario(play, defaults={"messages": 500_000, "rate": 100, "seconds": 60})
