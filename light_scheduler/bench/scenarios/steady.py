"""Steady: schedules that are due at an even rate, accepted before the first is due; how late does a consumer see them?

Lateness is measured live by a read_committed consumer on the same machine, until it has received the record. Faults are
counted afterwards, with the worker stopped.
"""

from __future__ import annotations

import time

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.filling import fill
from light_scheduler.bench.looks import Look, follow, look
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.scenarios.burst import lead_ms
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError
from light_scheduler.settings import Settings

_WARM_UP_MS = 1_000  # between the consumer's start and the first schedule


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round. Raises SchedulerError if not everything was accepted before the first was due."""
    with stage.application(options.stage_ahead_ms) as application:
        return _play(application, options, progress)


def _play(application: BenchApplication, options: Options, progress: Progress) -> dict[str, float]:
    worker, clock = application.worker, SystemClock()
    if options.pending:
        fill(application, options, options.pending, progress)
    else:
        progress.phase("starting the worker")
        worker.start()
        worker.wait_ready()
    begun = follow(worker, lambda seen: seen.carried_out, 0, progress)[-1].carried_out
    due = clock.now() + lead_ms(options.messages, attempt=0)
    workload = Workload(
        messages=options.messages,
        payloads=Payloads(options.payload_bytes, options.seed),
        target=application.target,
        due=DueTimes(due - due % options.grid_ms, options.rate, options.grid_ms),
    )
    progress.phase("sending commands", options.messages)
    produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
    progress.phase("accepting", options.messages)
    before = follow(worker, lambda seen: seen.carried_out - begun, options.messages, progress)[-1]
    wait_ms = workload.due - _WARM_UP_MS - clock.now()
    if wait_ms < 0:
        raise SchedulerError(f"{options.messages} schedules were not accepted in time: measure with a lower --rate")
    progress.phase("waiting for the first")
    time.sleep(wait_ms / 1_000)
    progress.phase("firing", options.messages)
    live, settled = Tally(workload), Tally(workload)
    target = TargetTopic(application.bootstrap_servers, application.target, options.partitions)
    read_deliveries(target, live, progress, clock)
    after = look(worker)
    worker.stop()
    progress.phase("counting deliveries", options.messages)
    read_deliveries(target, settled, progress)
    return {**cost(before, after), **live.lateness.figures(), **settled.faults()}


def cost(before: Look, after: Look | None) -> dict[str, float]:
    """Return the cost per firing between two looks, including the worker's idle time in between."""
    if after is None or before.cpu_s is None or after.cpu_s is None or after.firings == before.firings:
        return {}
    return {"worker_cpu_us_per_event": (after.cpu_s - before.cpu_s) * 1e6 / (after.firings - before.firings)}


SCENARIO = Scenario(
    play,
    defaults={
        "rate": 1_000,
        "seconds": 30,
        "grid_ms": 1,
        "pending": 0,
        "stage_ahead_ms": Settings.stage_ahead,
        "security_protocol": "PLAINTEXT",
        "sasl_mechanism": "PLAIN",
    },
)
