"""Peers: other schedulers with the same one-shots, one after the other. See `benchmarks/peers.py` in a clone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from light_scheduler.bench.figures import UNITS
from light_scheduler.bench.options import OF_EVERY_SCENARIO, Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import Stage
from light_scheduler.errors import ConfigurationError, SchedulerError

CLONE = Path(__file__).parents[3]
OURS = "light"
PEERS = ("light_node", "streams", "db_scheduler", "celery", "apscheduler")
"""Names of the others in `benchmarks.peers`, which are also the prefixes of their figures."""
FIGURES = {
    "accepted_per_s": "accepted_per_s",
    "burst_per_s": "firings_per_s",
    **{name: name for name in ("lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms")},
}
"""Figure of a contestant -> its name in a document."""
FAULTS = ("missing", "duplicate", "early", "wrong")
_MESSAGES = 50_000


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round. Each contestant is also killed once; faults are those without and with the kill together.

    Raises ConfigurationError for options that do not apply, and SchedulerError outside of a clone or if a contestant
    fails.
    """
    if options.payload_bytes != OF_EVERY_SCENARIO["payload_bytes"]:
        raise ConfigurationError("--payload-bytes", "does not apply to peers, where payloads have 200")
    if not (CLONE / "benchmarks" / "peers.py").is_file():
        raise SchedulerError("bench peers runs in a clone only: what measures other schedulers is not installed")
    sys.path.insert(0, str(CLONE))  # the folder is not part of the package
    try:
        results = import_module("benchmarks.peers").measured(stage, progress, options.messages / _MESSAGES)
    finally:
        sys.path.remove(str(CLONE))
    if failures := [f"{found['title']}: {why}" for found in results.values() for why in found["failures"]]:
        raise SchedulerError("; ".join(failures))
    return {
        shown if name == OURS else f"{name}_{shown}": value
        for name, found in results.items()
        for shown, value in _figures({figure: each["median"] for figure, each in found["figures"].items()}).items()
    }


def _figures(found: Mapping[str, float]) -> dict[str, float]:
    """Return the document's figures of one contestant."""
    figures = {shown: found[figure] for figure, shown in FIGURES.items() if figure in found}
    return figures | {fault: found.get(fault, 0.0) + found.get(f"killed_{fault}", 0.0) for fault in FAULTS}


SCENARIO = Scenario(
    play,
    defaults={"messages": _MESSAGES},
    units={**UNITS, **{f"{peer}_{shown}": UNITS[shown] for peer in PEERS for shown in (*FIGURES.values(), *FAULTS)}},
)
