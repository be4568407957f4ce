"""Burst: schedules that are all due at one instant and were accepted before it.

Faults are counted afterwards, with the worker stopped: by reading the target topic as read_committed consumers do, not
by asking the worker.
"""

from __future__ import annotations

import time

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.looks import Look, follow, span_of
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.records import Shape
from light_scheduler.bench.scenario import Ceiling, Scenario
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

_LEAD_MS = 4_000
_ASSUMED_PER_MS = 15  # commands that are sent and accepted per millisecond
_ATTEMPTS = 4
_QUIET_MS = 500  # time between the end of accepting and the instant


def lead_ms(messages: int, attempt: int) -> int:
    """Return how long before the instant the first command is sent (ms). Each attempt (from 0) doubles it."""
    return (_LEAD_MS + messages // _ASSUMED_PER_MS) << attempt


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round. Repeat it with more time if not everything was accepted before the instant."""
    for attempt in range(_ATTEMPTS):
        with stage.application() as application:
            found = _play_once(application, options, lead_ms(options.messages, attempt), progress)
        if found is not None:
            return found
    raise _too_slow(options, _ATTEMPTS - 1)


def burst(
    application: BenchApplication, options: Options, progress: Progress, prefix: str = "bench"
) -> dict[str, float]:
    """Play once in an application with other pending schedules, with time to spare. The worker is stopped
    afterwards."""
    found = _play_once(application, options, lead_ms(options.messages, 1), progress, prefix)
    if found is None:
        raise _too_slow(options, 1)
    return found


def _too_slow(options: Options, attempt: int) -> SchedulerError:
    return SchedulerError(
        f"{options.messages} schedules were not accepted within "
        f"{lead_ms(options.messages, attempt) / 1_000:.0f} s: measure with fewer --messages"
    )


def _play_once(
    application: BenchApplication, options: Options, lead: int, progress: Progress, prefix: str = "bench"
) -> dict[str, float] | None:
    """Return the figures of a round; None if the instant came too soon."""
    worker, clock = application.worker, SystemClock()
    if not worker.is_running:
        progress.phase("starting the worker")
        worker.start()
        worker.wait_ready()
    before = follow(worker, lambda seen: seen.carried_out, 0, progress)[-1]
    workload = Workload(
        messages=options.messages,
        payloads=Payloads(options.payload_bytes, options.seed),
        target=application.target,
        due=DueTimes(clock.now() + lead),
        namespace=Namespace(prefix=prefix),
    )
    progress.phase("sending commands", options.messages)
    produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
    progress.phase("accepting", options.messages)
    follow(worker, lambda seen: seen.carried_out - before.carried_out, options.messages, progress)
    wait_ms = workload.due - clock.now() - _QUIET_MS
    if wait_ms < 0:
        return None
    progress.phase("waiting for the instant")
    time.sleep(wait_ms / 1_000)
    progress.phase("firing", options.messages)
    looks = follow(worker, lambda seen: seen.firings, options.messages, progress)
    worker.stop()
    progress.phase("counting deliveries", options.messages)
    tally = Tally(workload)
    read_deliveries(TargetTopic(application.bootstrap_servers, application.target, options.partitions), tally, progress)
    return {**speed(looks), **tally.lateness.figures(), **tally.faults()}


def speed(looks: list[Look]) -> dict[str, float]:
    """Return rate and cost from all looks at the worker around the instant."""
    span = span_of(looks, lambda seen: seen.firings)
    found: dict[str, float] = {"firings_per_s": span.per_s}
    if span.cpu_us_per_event is not None:
        found["worker_cpu_us_per_event"] = span.cpu_us_per_event
    return found


SCENARIO = Scenario(
    play,
    Ceiling("firings_per_s", Shape.FIRING),
    defaults={"messages": 200_000, "security_protocol": "PLAINTEXT", "sasl_mechanism": "PLAIN"},
)
