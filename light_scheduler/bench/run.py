"""A run: measures ceiling and scenario alternately, so that both see the machine in the same state."""

from __future__ import annotations

import msgspec

from .ceiling import ceiling_per_s
from .document import Document
from .figures import summarised
from .machine import machine, versions
from .options import Options
from .progress import Progress
from .registry import scenario_named
from .scenario import Ceiling
from .stage import Stage


def run(name: str, options: Options, progress: Progress) -> Document:
    """Measure a scenario. Raises SchedulerError if the broker or a worker fails."""
    scenario = scenario_named(name)
    found_on = machine()
    rounds: list[dict[str, float]] = []
    progress.phase("starting Kafka")
    with Stage(options.partitions, options.security_protocol, options.sasl_mechanism) as stage:
        for number in range(1, options.repeat + 1):
            progress.round = f"{name} {number} of {options.repeat}"
            ceiling = scenario.ceiling
            limit = ceiling and ceiling_per_s(stage, ceiling.shape, options.payload_bytes, progress)
            of_round = msgspec.structs.replace(options, seed=options.seed + number - 1)
            figures = scenario.play(stage, of_round, progress)
            rounds.append(compared(figures, ceiling, limit) if ceiling and limit else figures)
    figures_of_all = summarised(rounds, scenario.units)
    return Document(scenario=name, settings=options, machine=found_on, versions=versions(), figures=figures_of_all)


def compared(figures: dict[str, float], ceiling: Ceiling, limit_per_s: float) -> dict[str, float]:
    """Add a round's ceiling (events per second), and the share of it that the scenario reached."""
    return {**figures, "ceiling_per_s": limit_per_s, "ratio_to_ceiling": figures[ceiling.figure] / limit_per_s}
