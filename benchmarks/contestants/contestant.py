"""What a scheduler is to a match: something that takes one-shots, delivers them, and can be killed."""

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
    """Where one contestant plays: an empty folder of its own, what was installed, and the Kafka that some need."""

    folder: Path
    toolbox: Toolbox
    stage: Stage
    progress: Progress


class Contestant(ABC):
    """A scheduler with an empty store of its own. A context manager: leaving it ends and removes everything.

    `settings` is what it runs with besides its defaults; its program reads them from there.
    """

    title: ClassVar[str]
    settings: ClassVar[Mapping[str, object]]
    pending: ClassVar[int] = 100_000
    """How many are made pending to see what they take."""
    burst: ClassVar[int] = 50_000
    """How many are due at one instant."""
    patience_s: ClassVar[float] = 30.0
    """For so long nothing may come after a kill before the rest counts as lost."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._running = ExitStack()

    @property
    @abstractmethod
    def arrivals(self) -> Arrivals:
        """What it has delivered so far."""

    @property
    def target(self) -> str:
        """The topic that it delivers to; empty if it delivers elsewhere."""
        return ""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id of the scheduler; its children belong to it."""

    @abstractmethod
    def open(self) -> None:
        """Start the store, then the scheduler; return when it takes work."""

    @abstractmethod
    def submit(self, work: Workload) -> float:
        """Hand in all of a workload; return the seconds until all were accepted: stored, and known to the scheduler."""

    @abstractmethod
    def kill(self) -> None:
        """End the scheduler, with its children, by SIGKILL. Its store goes on."""

    @abstractmethod
    def restart(self) -> None:
        """Start the scheduler again on the same store, without waiting for it."""

    @abstractmethod
    def left(self) -> int | None:
        """Return how many the store still holds; None if it does not tell."""

    @abstractmethod
    def store_bytes(self) -> int:
        """Return what the store has in memory if it keeps everything there, else on disk."""

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of scheduler and store."""

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
    """Wait until a condition holds. Raises SchedulerError naming what was awaited."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SchedulerError(f"{what}: not within {timeout_s:g} s")
        time.sleep(interval_s)
