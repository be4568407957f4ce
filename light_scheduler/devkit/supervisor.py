"""Keeping worker processes running: one that ends is reported and started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .worker_process import WorkerProcess

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # a worker that ran for so long has earned a quick restart


@dataclass
class _Watched:
    worker: WorkerProcess
    started_at: float
    pause: float = _FIRST_PAUSE_S
    restart_at: float | None = None


class Supervisor:
    """Watches workers. `report` is told, in a sentence, what happened.

    A worker that keeps ending is started again after pauses that grow from 1 s to 30 s. `now` is a monotonic clock in
    seconds.
    """

    def __init__(
        self, workers: Sequence[WorkerProcess], report: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._report = report
        self._watched = [_Watched(worker, now()) for worker in workers]

    def check(self) -> None:
        """Look at each worker once, and start again what has ended and waited its pause."""
        for watched in self._watched:
            if watched.restart_at is not None:
                if self._now() >= watched.restart_at:
                    self._start_again(watched)
            elif (return_code := watched.worker.return_code) is not None:
                self._plan_restart(watched, return_code)

    def _plan_restart(self, watched: _Watched, return_code: int) -> None:
        if self._now() - watched.started_at >= _STEADY_S:
            watched.pause = _FIRST_PAUSE_S
        watched.restart_at = self._now() + watched.pause
        self._report(
            f"Worker {watched.worker.url} (pid {watched.worker.pid}) ended {_how(return_code)}; "
            f"starting it again in {watched.pause:g} s. {watched.worker.log_end()}"
        )
        watched.pause = min(watched.pause * 2, _LONGEST_PAUSE_S)

    def _start_again(self, watched: _Watched) -> None:
        watched.worker.start()
        watched.started_at, watched.restart_at = self._now(), None
        self._report(f"Worker {watched.worker.url} runs again (pid {watched.worker.pid})")


def _how(return_code: int) -> str:
    return f"by signal {-return_code}" if return_code < 0 else f"with exit code {return_code}"
