"""Progress of a job on standard error: a bar of the finished Spark tasks in the current phase."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext, StatusTracker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import SpinnerColumn

from light_scheduler.phases import PhaseBar

_LOOK_EVERY_S = 0.5


class SparkProgress(PhaseBar):
    """The bar of a job."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(SpinnerColumn(), console=console)
        self._context: SparkContext | None = None
        self._phase = ""

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Within the block, show how many tasks of a session are done, and name its jobs by their phases."""
        ended = threading.Event()
        self._context = context_of(spark)
        watcher = threading.Thread(target=self._look, args=(self._context, ended), daemon=True, name="spark-progress")
        if self.console.is_terminal and self._context is not None:
            watcher.start()
        try:
            yield
        finally:
            self._context = None
            ended.set()
            if watcher.is_alive():
                watcher.join()

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show a phase while the block runs. Spark's UI uses it as the name of the block's jobs."""
        self.begin(text)
        self._phase = text
        if self._context is not None:
            self._context.setJobGroup(text, text)
        try:
            yield
        finally:
            self.end()
            if self._context is not None:
                for name in ("spark.jobGroup.id", "spark.job.description"):
                    self._context.setLocalProperty(name, None)  # type: ignore[arg-type]  # takes it away

    def _look(self, context: SparkContext, ended: threading.Event) -> None:
        tracker = context.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            self.done_of(*tasks_of(tracker, self._phase))


def context_of(spark: SparkSession) -> SparkContext | None:
    """Return the context of a session; None with Spark Connect, which has no context and so no task counts."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def tasks_of(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Return the numbers of finished tasks and of all tasks in a group's jobs, for the stages that Spark knows."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    ids = {stage for job in jobs if job is not None for stage in job.stageIds}
    # A stream's jobs have their own group.
    stages = [tracker.getStageInfo(stage) for stage in ids or tracker.getActiveStageIds()]
    total = sum(stage.numTasks for stage in stages if stage is not None)
    return sum(stage.numCompletedTasks for stage in stages if stage is not None), total
