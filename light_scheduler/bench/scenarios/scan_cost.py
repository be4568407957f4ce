"""Scan cost: bursts while few schedules are pending, and again with many.

The ceiling is the rate with few.
"""

from __future__ import annotations

from light_scheduler.bench.figures import FAULTS
from light_scheduler.bench.filling import fill
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.scenarios.burst import burst
from light_scheduler.bench.stage import BenchApplication, Stage

FEW = 10_000
BURSTS = 3


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    with stage.application() as application:
        some = min(FEW, options.pending // 2)
        fill(application, options, some, progress, prefix="first")
        few = _bursts(application, options, progress, "few")
        fill(application, options, options.pending - some, progress)
        many = _bursts(application, options, progress, "many")
    rate = few["firings_per_s"]
    return {**many, "ceiling_per_s": rate, "ratio_to_ceiling": many["firings_per_s"] / rate}


def _bursts(application: BenchApplication, options: Options, progress: Progress, prefix: str) -> dict[str, float]:
    """Play some bursts, one after the other. Return the figures of the median one, and the faults of all."""
    found = [burst(application, options, progress, prefix=f"{prefix}{number}") for number in range(BURSTS)]
    middle = sorted(found, key=lambda figures: figures["firings_per_s"])[BURSTS // 2]
    return {**middle, **{name: sum(figures[name] for figures in found) for name in FAULTS if name in middle}}


SCENARIO = Scenario(play, defaults={"pending": 1_000_000, "messages": 100_000})
