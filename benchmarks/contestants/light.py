"""light-scheduler: one worker, with its firings as a read_committed consumer receives them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import psutil

from light_scheduler.bench.footprint import disk_bytes
from light_scheduler.bench.looks import follow, look
from light_scheduler.bench.machine import versions
from light_scheduler.bench.producing import produce
from light_scheduler.bench.stage import BenchApplication
from light_scheduler.bench.workload import Workload
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import SchedulerError

from .arrivals import ReadArrivals
from .contestant import Contestant
from .topics import topic_bytes


class LightScheduler(Contestant):
    title = "light-scheduler"
    processes: ClassVar[int] = 1
    settings: ClassVar[Mapping[str, object]] = {"workers": 1, "partitions": 4}

    @property
    def arrivals(self) -> ReadArrivals:
        return self._arrivals

    @property
    def pid(self) -> int:
        if self._worker.pid is None:
            raise SchedulerError("the worker was not started")
        return self._worker.pid

    @property
    def target(self) -> str:
        return self._application.target

    def open(self) -> None:
        self._application: BenchApplication = self._running.enter_context(self._place.stage.application())
        settings = replace(self._application.settings, processes=self.processes)
        self._worker = WorkerProcess(settings, self._place.folder / "worker.log")
        self._running.callback(self._worker.stop)
        self._arrivals = ReadArrivals(self._application.bootstrap_servers, self._application.target)
        self._arrivals.start()
        self._running.callback(self._arrivals.close)
        self._worker.start()
        self._worker.wait_ready()

    def submit(self, work: Workload) -> float:
        application, progress = self._application, self._place.progress
        before = follow(self._worker, lambda seen: seen.carried_out, 0, progress)[-1].carried_out
        begun = time.monotonic()
        produce(application.bootstrap_servers, application.settings.topics.commands, work, progress)
        follow(self._worker, lambda seen: seen.carried_out - before, work.messages, progress)
        return time.monotonic() - begun

    def kill(self) -> None:
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children(recursive=True)
            self._worker.kill()
            for child in children:
                child.kill()

    def restart(self) -> None:
        self._worker.start()

    def left(self) -> int | None:
        seen = look(self._worker)
        return None if seen is None else seen.pending

    def store_bytes(self) -> int:
        settings, broker = self._application.settings, self._place.stage.broker_folder
        assert broker is not None, "the application has topics"
        return disk_bytes(settings.data_dir) + topic_bytes(broker, f"{settings.app_id}-")

    def versions(self) -> Mapping[str, str]:
        return versions()
