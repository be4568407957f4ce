"""Memory: the footprint of a worker with pending schedules, none of which is due."""

from __future__ import annotations

from light_scheduler.bench.filling import fill
from light_scheduler.bench.footprint import disk_bytes, idle_cpu_percent, rss_bytes
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import Stage


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    with stage.application() as application:
        seen = fill(application, options, options.pending, progress)
        pid = application.worker.pid
        assert pid is not None, "the worker was started"
        progress.phase("watching it do nothing")
        found = {
            "idle_cpu_percent": idle_cpu_percent(pid),
            "rss_bytes": rss_bytes(pid),
            "disk_bytes": disk_bytes(application.settings.data_dir),
        }
    known = {name: value for name, value in found.items() if value is not None}
    return {**known, "missing": options.pending - seen.pending, "early": seen.firings}


SCENARIO = Scenario(play, defaults={"pending": 1_000_000})
