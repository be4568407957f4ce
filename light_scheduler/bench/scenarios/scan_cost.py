"""Scan cost: a burst with few schedules pending beside it, and again with many.

The ceiling is the rate with few.
"""

from __future__ import annotations

from light_scheduler.bench.filling import fill
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.scenarios.burst import burst
from light_scheduler.bench.stage import Stage

FEW = 10_000


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    with stage.application() as application:
        fill(application, options, FEW, progress, prefix="few")
        with_few = burst(application, options, progress, prefix="early")["firings_per_s"]
        fill(application, options, options.pending - FEW, progress)
        found = burst(application, options, progress)
    return {**found, "ceiling_per_s": with_few, "ratio_to_ceiling": found["firings_per_s"] / with_few}


SCENARIO = Scenario(play, defaults={"pending": 1_000_000, "messages": 100_000})
