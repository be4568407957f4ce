"""Peers: other schedulers with the same one-shots, one after the other. See `benchmarks/peers.py` of a clone."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from light_scheduler.bench.figures import UNITS
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.stage import Stage
from light_scheduler.errors import ConfigurationError, SchedulerError

CLONE = Path(__file__).parents[3]
OURS = "light"
PEERS = ("light_node", "streams", "db_scheduler", "celery", "apscheduler")
"""How `benchmarks.peers` calls the others, which begin the names of their figures."""
FIGURES = {
    "accepted_per_s": "accepted_per_s",
    "burst_per_s": "firings_per_s",
    **{name: name for name in ("lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms")},
    **{name: name for name in ("missing", "duplicate", "early", "wrong")},
}
"""Figure of a contestant -> its name in a document."""
_PAYLOAD_BYTES = 200
_MESSAGES = 50_000


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round, in which everybody is killed once, too.

    Raises ConfigurationError for another size of payloads, and SchedulerError where there is no clone, or if a
    contestant does not do its part.
    """
    if options.payload_bytes != _PAYLOAD_BYTES:
        raise ConfigurationError("--payload-bytes", f"does not apply to peers, where payloads have {_PAYLOAD_BYTES}")
    if not (CLONE / "benchmarks" / "peers.py").is_file():
        raise SchedulerError("bench peers runs in a clone only: what measures other schedulers is not installed")
    sys.path.insert(0, str(CLONE))  # the folder is no part of the package
    try:
        results = import_module("benchmarks.peers").measured(stage, progress, options.messages / _MESSAGES)
    finally:
        sys.path.remove(str(CLONE))
    if failures := [f"{found['title']}: {why}" for found in results.values() for why in found["failures"]]:
        raise SchedulerError("; ".join(failures))
    return {
        shown if name == OURS else f"{name}_{shown}": found["figures"][figure]["median"]
        for name, found in results.items()
        for figure, shown in FIGURES.items()
    }


SCENARIO = Scenario(
    play,
    defaults={"messages": _MESSAGES},
    units={**UNITS, **{f"{peer}_{shown}": UNITS[shown] for peer in PEERS for shown in FIGURES.values()}},
)
