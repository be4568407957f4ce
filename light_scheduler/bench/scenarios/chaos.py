"""Chaos: random faults during a workload; a checker decides whether any promise was broken.

Each round has its own seed and cluster. The cluster is kept if the round failed.
"""

from __future__ import annotations

from light_scheduler.bench.chaos.checker import wilson_upper
from light_scheduler.bench.chaos.faults import KINDS
from light_scheduler.bench.chaos.run import Outcome, Plan, run
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import Stage


def play(_stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round. The stage's broker is not used, since rounds kill theirs."""
    plan = Plan(
        seed=options.seed,
        seconds=options.seconds,
        messages=options.messages,
        payload_bytes=options.payload_bytes,
        partitions=options.partitions,
        workers=options.workers,
        brokers=options.brokers,
        pause=options.pause_ms / 1_000,
    )
    return figures(run(plan, progress))


def figures(outcome: Outcome) -> dict[str, float]:
    """Return the figures of a round. The bound is an upper bound of the share of commands and messages with a broken
    promise."""
    verdict = outcome.verdict
    return {
        **verdict.counts(),
        "unsettled": int(outcome.unsettled is not None),
        "commands": verdict.commands,
        "firings": verdict.deliveries,
        "failure_rate_upper_bound": wilson_upper(len(verdict.faults), verdict.promises),
        "faults": outcome.injected.total(),
        **{f"faults_{kind}": outcome.injected[kind] for kind in KINDS},
    }


SCENARIO = Scenario(
    play,
    defaults={"messages": 100_000, "seconds": 180, "workers": 2, "brokers": 1, "pause_ms": 4_000, "repeat": 1},
)
