"""Keeps worker processes running: reports and restarts ones that end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from light_scheduler.host.restarts import Restarts, how_it_ended

from .worker_process import WorkerProcess


@dataclass
class _Watched:
    worker: WorkerProcess
    started_at: float
    restarts: Restarts = field(default_factory=Restarts)
    restart_at: float | None = None


class Supervisor:
    """Watches workers. `report` is called with a sentence about each event.

    A worker that keeps ending is restarted after pauses that grow from 1 s to 30 s. `now` is a monotonic clock in
    seconds.
    """

    def __init__(
        self, workers: Sequence[WorkerProcess], report: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._report = report
        self._watched = [_Watched(worker, now()) for worker in workers]

    def check(self) -> None:
        """Check each worker once, and restart the ones that have ended and waited for their pause."""
        for watched in self._watched:
            if watched.restart_at is not None:
                if self._now() >= watched.restart_at:
                    self._start_again(watched)
            elif (return_code := watched.worker.return_code) is not None:
                self._plan_restart(watched, return_code)

    def _plan_restart(self, watched: _Watched, return_code: int) -> None:
        pause = watched.restarts.pause_after(self._now() - watched.started_at)
        watched.restart_at = self._now() + pause
        self._report(
            f"Worker {watched.worker.url} (pid {watched.worker.pid}) ended {how_it_ended(return_code)}; "
            f"starting it again in {pause:g} s. {watched.worker.log_end()}"
        )

    def _start_again(self, watched: _Watched) -> None:
        watched.worker.start()
        watched.started_at, watched.restart_at = self._now(), None
        self._report(f"Worker {watched.worker.url} runs again (pid {watched.worker.pid})")
