"""What a job is doing, on standard error while it does it: a bar of the tasks that Spark has done of those it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_LOOK_EVERY_S = 0.5


class SparkProgress:
    """A bar for the phase that runs, on a terminal; else a line for each phase. A context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            refresh_per_second=4,
        )
        self._task = self._bar.add_task("", total=None, visible=False)

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Show, within the block, how many tasks of a session are done."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._look, args=(spark, ended), daemon=True, name="spark-progress")
        if self._console.is_terminal:
            watcher.start()
        try:
            yield
        finally:
            ended.set()
            if watcher.is_alive():
                watcher.join()

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        self._bar.reset(self._task, total=None, completed=0, description=text, visible=True)
        if not self._console.is_terminal:
            self._console.print(text, highlight=False)
        try:
            yield
        finally:
            self._bar.update(self._task, visible=False)

    def _look(self, spark: SparkSession, ended: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            total = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            self._bar.update(self._task, total=total or None, completed=done)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()
