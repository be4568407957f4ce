"""What a job is doing, on standard error while it does it: a bar of the tasks that Spark has done of those it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import SpinnerColumn

from light_scheduler.phases import PhaseBar

_LOOK_EVERY_S = 0.5


class SparkProgress(PhaseBar):
    """The bar of a job."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(SpinnerColumn(), console=console)

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Show, within the block, how many tasks of a session are done."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._look, args=(spark, ended), daemon=True, name="spark-progress")
        if self.console.is_terminal:
            watcher.start()
        try:
            yield
        finally:
            ended.set()
            if watcher.is_alive():
                watcher.join()

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show a phase as long as the block runs."""
        self.begin(text)
        try:
            yield
        finally:
            self.end()

    def _look(self, spark: SparkSession, ended: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            total = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            self.done_of(done, total)
