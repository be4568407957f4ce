"""Recovery: a worker that restarts with its local state, and one that has lost it.

Failover: another worker joins and keeps warm copies of the first one's partitions; then the first one is killed. The
time ends when the other worker runs all partitions, so it includes the session time-out.

Warm: one schedule is due when the worker starts, and a read_committed consumer waits for it. First after `kill -9`,
which loses what RocksDB has not flushed, then after a clean stop.

Cold: the state folder is deleted. The rate counts changelog records between the first and the last look at the
restoration.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.filling import fill
from light_scheduler.bench.footprint import rss_bytes
from light_scheduler.bench.looks import INTERVAL_S, Look, follow, info_of, look, span_of
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import SchedulerError
from light_scheduler.host.ports import free_port
from light_scheduler.model.lane_state import LaneState
from light_scheduler.web.worker_documents import InfoDocument

_PATIENCE_S = 60.0
_WARM_S = 600.0


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    with stage.application() as application:
        fill(application, options, options.pending, progress)
        application.worker.kill()
        killed_s = restart_to_first_firing_s(application, options, progress, "after-kill")
        application.worker.stop()
        warm_s = restart_to_first_firing_s(application, options, progress, "after-stop")
        application.worker.stop()
        shutil.rmtree(application.settings.data_dir)
        per_s = recovered_per_s(restore(application, options, progress))
        end = look(application.worker)
        pid = application.worker.pid
        memory = None if pid is None else rss_bytes(pid)
        with another_worker(application) as other:
            failover_s = fail_over(application, other, progress)
            after = look(other)
    if end is None or after is None:
        raise SchedulerError(f"the worker does not answer. {application.worker.log_end()}")
    found = {"recovered_per_s": per_s, "restart_to_first_firing_s": warm_s}
    found |= {"restart_after_kill_to_first_firing_s": killed_s, "failover_s": failover_s}
    if memory is not None:
        found["rss_bytes"] = memory
    missing = max(options.pending - left.pending for left in (end, after))
    return {**found, "missing": missing, "early": end.firings}


def restart_to_first_firing_s(
    application: BenchApplication, options: Options, progress: Progress, prefix: str
) -> float:
    """Start the worker with a schedule that is already due. Return how long its delivery takes (s)."""
    progress.phase("warm start")
    now = Workload(
        messages=1,
        payloads=Payloads(options.payload_bytes, options.seed),
        target=application.target,
        due=DueTimes(SystemClock().now()),
        namespace=Namespace(prefix=prefix),
    )
    produce(application.bootstrap_servers, application.settings.topics.commands, now, progress)
    begun = time.monotonic()
    application.worker.start()
    read_deliveries(
        TargetTopic(application.bootstrap_servers, application.target, options.partitions),
        Tally(now),
        progress,
        SystemClock(),
        patience_s=_PATIENCE_S,
    )
    return time.monotonic() - begun


def restore(application: BenchApplication, options: Options, progress: Progress) -> list[Look]:
    """Start the worker without its state. Return all looks until everything is restored."""
    progress.phase("cold start", options.pending)
    application.worker.start()
    looks = follow(application.worker, lambda seen: seen.restored, options.pending, progress)
    application.worker.wait_ready()
    return looks


def recovered_per_s(looks: list[Look]) -> float:
    """Return the rate of restoring (records per second)."""
    return span_of(looks, lambda seen: seen.restored, "--pending").per_s


@contextmanager
def another_worker(application: BenchApplication) -> Iterator[WorkerProcess]:
    """Start a worker that shares the partitions, and keeps copies of the first worker's."""
    settings = replace(
        application.settings,
        data_dir=application.settings.data_dir.with_name("other"),
        web_port=free_port(),
        instance_id=f"{application.settings.app_id}-other",
        standby_replicas=1,
    )
    worker = WorkerProcess(settings, settings.data_dir.with_name("other.log"))
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def fail_over(application: BenchApplication, other: WorkerProcess, progress: Progress) -> float:
    """Kill the first worker when the other one is warm. Return how long the other one takes to run all partitions
    (s)."""
    partitions = application.settings.partitions
    progress.phase("warming another worker")
    _await(other, lambda seen: is_warm(seen, partitions))
    progress.phase("failing over")
    application.worker.kill()
    begun = time.monotonic()
    _await(other, lambda seen: sum(lane.state == LaneState.RUNNING for lane in seen.lanes) == partitions)
    return time.monotonic() - begun


def is_warm(document: InfoDocument, partitions: int) -> bool:
    """Return whether one of two workers runs its partitions, and has caught up with all of the other's."""
    lanes, copies = document.lanes, document.standbys
    return (
        bool(copies)
        and len(lanes) + len(copies) == partitions
        and all(lane.state == LaneState.RUNNING for lane in lanes)
        and all(copy.lag == 0 for copy in copies)
    )


def _await(worker: WorkerProcess, is_so: Callable[[InfoDocument], bool]) -> None:
    deadline = time.monotonic() + _WARM_S
    while (seen := info_of(worker)) is None or not is_so(seen):
        if worker.return_code is not None or time.monotonic() > deadline:
            raise SchedulerError(f"the other worker did not get ready in time. {worker.log_end()}")
        time.sleep(INTERVAL_S)


SCENARIO = Scenario(play, defaults={"pending": 1_000_000})
