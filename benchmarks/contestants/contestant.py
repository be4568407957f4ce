"""The interface of a scheduler in a match: it accepts one-shots, delivers them, and can be killed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import Stage
from light_scheduler.bench.workload import Workload
from light_scheduler.errors import SchedulerError

from .arrivals import Arrivals
from .toolbox import Toolbox


@dataclass(frozen=True)
class Workspace:
    """The environment of a contestant: an empty folder, the installed tools, and Kafka for those that need it."""

    folder: Path
    toolbox: Toolbox
    stage: Stage
    progress: Progress


class Contestant(ABC):
    """A scheduler with its own empty store. A context manager: leaving it ends and removes everything.

    `settings` are those that differ from its defaults; its program reads them from there.
    """

    title: ClassVar[str]
    settings: ClassVar[Mapping[str, object]]
    pending: ClassVar[int] = 100_000
    """Number of pending schedules for measuring their footprint."""
    burst: ClassVar[int] = 50_000
    """Number of schedules that are due at one instant."""
    patience_s: ClassVar[float] = 30.0
    """How long (s) nothing may arrive after a kill before the rest counts as lost."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._running = ExitStack()

    @property
    @abstractmethod
    def arrivals(self) -> Arrivals:
        """The deliveries so far."""

    @property
    def target(self) -> str:
        """The topic that it delivers to; empty if it delivers elsewhere."""
        return ""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id of the scheduler. Its children are included in measurements."""

    @abstractmethod
    def open(self) -> None:
        """Start the store, then the scheduler. Return when it accepts work."""

    @abstractmethod
    def submit(self, work: Workload) -> float:
        """Submit a workload. Return the seconds until all of it was accepted: stored, and known to the scheduler."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the scheduler and its children with SIGKILL. Its store keeps running."""

    @abstractmethod
    def restart(self) -> None:
        """Restart the scheduler on the same store, without waiting for it."""

    @abstractmethod
    def left(self) -> int | None:
        """Return the number of schedules still in the store; None if unknown."""

    @abstractmethod
    def store_bytes(self) -> int:
        """Return the size of the store: in memory if it keeps everything there, otherwise on disk."""

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the scheduler and the store."""

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()


def await_that(condition: Callable[[], bool], what: str, timeout_s: float = 60.0, interval_s: float = 0.02) -> None:
    """Wait until a condition holds. Raises SchedulerError naming `what` after the time-out."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SchedulerError(f"{what}: not within {timeout_s:g} s")
        time.sleep(interval_s)
