"""Speed, punctuality and safety: the four figures that most readers look for."""

from __future__ import annotations

from benchmarks.report.markdown import NOT_MEASURED, number, spread, table
from benchmarks.report.results import Results

from .failures import SEEDS, THREE_BROKERS, broken, faults


def speed(results: Results) -> str:
    """A row for each."""
    rate = number(results.setting("steady", "rate"))
    chaos = [*SEEDS, THREE_BROKERS]
    injected, violations = faults(results, chaos), broken(results, chaos)
    survived = f"{number(injected)} faults, {number(violations)} messages lost, doubled, early or wrong"
    return table(
        ["how fast, how punctual, how safe", "measured"],
        [
            ["commands accepted, 1/s (`ingest`)", spread(results.figure("ingest", "accepted_per_s"))],
            ["firings delivered, 1/s (`burst`)", spread(results.figure("burst", "firings_per_s"))],
            [f"lateness p99 at {rate} firings a second, ms", spread(results.figure("steady", "lateness_p99_ms"))],
            [
                "random kills, freezes, cut connections, full disks (`chaos`)",
                survived if injected is not None else NOT_MEASURED,
            ],
        ],
    )
