"""Backlog: a burst while other schedules are pending that are not due."""

from __future__ import annotations

from light_scheduler.bench.filling import fill
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.records import Shape
from light_scheduler.bench.scenario import Ceiling, Scenario
from light_scheduler.bench.scenarios.burst import burst
from light_scheduler.bench.stage import Stage


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    with stage.application() as application:
        fill(application, options, options.pending, progress)
        return burst(application, options, progress)


SCENARIO = Scenario(play, Ceiling("firings_per_s", Shape.FIRING), defaults={"pending": 1_000_000, "messages": 200_000})
