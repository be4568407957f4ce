"""Update cost: new schedules and replacements of others, while few schedules are pending, and again with many.

Replaced schedules are spread over all pending ones, and their due times move by a minute. The worker is stopped while
commands are sent, so that they are waiting for it, as in `ingest`.
"""

from __future__ import annotations

import signal
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from light_scheduler.bench.filling import fill
from light_scheduler.bench.footprint import disk_bytes, rss_bytes
from light_scheduler.bench.looks import Span, follow, look, span_of
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload, WorkloadCommand
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

FEW = 1_000_000
RUNS = 3
_STRIDE = 1_000_003  # a prime: consecutive schedules are far apart, like those of unrelated entities
_FAR_MS = 30 * 24 * 3_600_000 + 60_000


class ScatteredWorkload(Workload):
    """Schedules of a workload that are far apart from each other. `some` is their number."""

    def __init__(self, some: range, **workload: Any) -> None:
        super().__init__(**workload)
        self._some = some

    def commands(self, first: int = 0, count: int | None = None) -> Iterator[WorkloadCommand]:
        """Yield `count` commands from number `first` on; default: all."""
        for step in self._some[first : None if count is None else first + count]:
            yield from super().commands(step * _STRIDE % self.messages, 1)


class Costs(NamedTuple):
    """Cost of one kind of commands: commands per second, and the worker's processor time for each (us)."""

    per_s: float
    cpu_us: float


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    few = min(FEW, options.pending // 2)
    many = options.pending - few
    with stage.application() as application:
        fill(application, options, few, progress, prefix="few")
        accepted_before, replaced_before = _costs(application, options, progress, "few", few)
        fill(application, options, many, progress, prefix="many")
        accepted, replaced = _costs(application, options, progress, "many", many)
        end, pid = look(application.worker), application.worker.pid
        memory = None if pid is None else rss_bytes(pid)
        if end is None or memory is None:
            raise SchedulerError(f"the worker does not answer. {application.worker.log_end()}")
        return {
            "accepted_per_s": accepted.per_s,
            "replaced_per_s": replaced.per_s,
            "accepted_ratio_to_few": accepted.per_s / accepted_before.per_s,
            "replaced_ratio_to_few": replaced.per_s / replaced_before.per_s,
            "accepted_cpu_ratio_to_few": accepted.cpu_us / accepted_before.cpu_us,
            "replaced_cpu_ratio_to_few": replaced.cpu_us / replaced_before.cpu_us,
            "rss_bytes": memory,
            "disk_bytes": disk_bytes(application.settings.data_dir),
            "missing": options.pending + 2 * RUNS * options.messages - end.pending,
            "early": end.firings,
        }


def _costs(
    application: BenchApplication, options: Options, progress: Progress, held: str, pending: int
) -> tuple[Costs, Costs]:
    """Add schedules, and replace some of those that are `held`, alternately. Return the cost of both."""
    accepted: list[Span] = []
    replaced: list[Span] = []
    for run in range(RUNS):
        common: dict[str, Any] = {
            "payloads": Payloads(options.payload_bytes, options.seed + run + 1),
            "target": application.target,
            "due": DueTimes(SystemClock().now() + _FAR_MS),
        }
        new = Workload(messages=options.messages, namespace=Namespace(prefix=f"{held}-{run}"), **common)
        accepted.append(_span(application, new, options.messages, progress))
        some = range(run * options.messages, (run + 1) * options.messages)
        others = ScatteredWorkload(some, messages=pending, namespace=Namespace(prefix=held), **common)
        replaced.append(_span(application, others, options.messages, progress))
    return _median(accepted), _median(replaced)


def _span(application: BenchApplication, workload: Workload, commands: int, progress: Progress) -> Span:
    """Make the worker carry out the commands of a workload, which are already waiting. Return its span."""
    worker = application.worker
    before = follow(worker, lambda seen: seen.carried_out, 0, progress)[-1]
    progress.phase("sending commands", commands)
    worker.send_signal(signal.SIGSTOP)
    try:
        produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
    finally:
        worker.send_signal(signal.SIGCONT)
    progress.phase("carrying them out", commands)
    looks = follow(worker, lambda seen: seen.carried_out - before.carried_out, commands, progress)
    return span_of(looks, lambda seen: seen.carried_out - before.carried_out)


def _median(spans: list[Span]) -> Costs:
    return Costs(
        statistics.median(each.per_s for each in spans), statistics.median(each.cpu_us_per_event or 0 for each in spans)
    )


SCENARIO = Scenario(play, defaults={"pending": 10_000_000, "messages": 100_000})
