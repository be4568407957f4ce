"""Recurring: cron schedules that all fire at each full minute; does a worker keep up, minute after minute?

It does if the maximum lateness stays below a minute. Firings are counted live by a read_committed consumer, from the
first minute that begins after all schedules are accepted.
"""

from __future__ import annotations

from light_scheduler.bench.deliveries import MINUTE_MS, MinuteTally, TargetTopic, read_deliveries
from light_scheduler.bench.looks import follow, look
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.scenarios.steady import cost
from light_scheduler.bench.stage import Stage
from light_scheduler.bench.workload import DueTimes, MinutelyWorkload, Payloads
from light_scheduler.clock import SystemClock


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round, which takes at least a minute."""
    with stage.application() as application:
        worker, clock = application.worker, SystemClock()
        progress.phase("starting the worker")
        worker.start()
        worker.wait_ready()
        workload = MinutelyWorkload(
            messages=options.messages,
            payloads=Payloads(options.payload_bytes, options.seed),
            target=application.target,
            due=DueTimes(clock.now()),
        )
        progress.phase("sending commands", options.messages)
        produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
        progress.phase("accepting", options.messages)
        before = follow(worker, lambda seen: seen.carried_out, options.messages, progress)[-1]
        minutes = max(1, options.seconds * 1_000 // MINUTE_MS)
        tally = MinuteTally(workload, (clock.now() // MINUTE_MS + 1) * MINUTE_MS, minutes)
        progress.phase("firing", options.messages * minutes)
        read_deliveries(
            TargetTopic(application.bootstrap_servers, application.target, options.partitions),
            tally,
            progress,
            clock,
            patience_s=2 * MINUTE_MS / 1_000,
        )
        after = look(worker)
        return {**cost(before, after), **tally.lateness.figures(), **tally.faults()}


SCENARIO = Scenario(play, defaults={"messages": 100_000, "seconds": 180})
