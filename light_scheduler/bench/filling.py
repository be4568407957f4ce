"""Schedules that are pending while something else is measured. They are accepted normally, and due in a month."""

from __future__ import annotations

from light_scheduler.clock import SystemClock

from .looks import Look, follow
from .options import Options
from .producing import produce
from .progress import Progress
from .stage import BenchApplication
from .workload import DueTimes, Namespace, Payloads, Workload

_FAR_MS = 30 * 24 * 3_600_000


def fill(application: BenchApplication, options: Options, count: int, progress: Progress, prefix: str = "held") -> Look:
    """Make a worker accept `count` schedules. Return a look at it afterwards. The worker is started, and keeps
    running."""
    workload = Workload(
        messages=count,
        payloads=Payloads(options.payload_bytes, options.seed),
        target=application.target,
        due=DueTimes(SystemClock().now() + _FAR_MS),
        namespace=Namespace(prefix=prefix),
    )
    return fill_with(application, workload, progress)


def fill_with(application: BenchApplication, workload: Workload, progress: Progress) -> Look:
    """Make a worker carry out the commands of a workload that is not due soon; see `fill`."""
    worker, count = application.worker, workload.messages
    if not worker.is_running:
        worker.start()
        worker.wait_ready()
    before = follow(worker, lambda seen: seen.carried_out, 0, progress)[-1].carried_out
    progress.phase("sending what is to be pending", count)
    produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
    progress.phase("accepting what is to be pending", count)
    return follow(worker, lambda seen: seen.carried_out - before, count, progress)[-1]
