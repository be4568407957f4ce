"""The measurements whose results are in benchmarks/results: command and approximate duration of each."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parents[1] / "results"
CHAOS = "light-scheduler bench chaos --seconds 240 --messages 400000 --pause 2s --workers 3 --repeat 1 --seed {} --json"
PIPELINE = "python -m benchmarks.pipeline --result {result}"
PEERS = "python -m benchmarks.peers"


class Measurement(NamedTuple):
    """A result, the duration of its command in minutes, and the command.

    The command prints the result, or writes it to `{result}` if it contains that.
    """

    name: str
    minutes: float
    command: str

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.name}.json"

    @property
    def shown(self) -> str:
        """The command as typed in a shell, at the root of a clone."""
        file = f"benchmarks/results/{self.name}.json"
        return self.command.format(result=file) if "{result}" in self.command else f"{self.command} > {file}"


MEASUREMENTS = (
    Measurement("ingest", 2, "light-scheduler bench ingest --messages 200000 --repeat 3 --json"),
    Measurement("burst", 3, "light-scheduler bench burst --messages 200000 --repeat 3 --json"),
    Measurement("against-f1ba380", 12, "python -m benchmarks.against f1ba380 --rounds 4 --messages 150000"),
    Measurement("scaling-processes", 4, "python benchmarks/scaling.py --processes --messages 200000"),
    Measurement("recurring", 5, "light-scheduler bench recurring --messages 100000 --seconds 180 --repeat 1 --json"),
    Measurement("peers-node", 6, f"{PEERS} light light_node streams --rounds 2 --result {{result}}"),
    Measurement("peers", 9, f"{PEERS} light streams db_scheduler celery apscheduler --rounds 2 --result {{result}}"),
    Measurement("recovery", 3, "light-scheduler bench recovery --pending 1000000 --repeat 3 --json"),
    Measurement("recovery-10m", 8, "light-scheduler bench recovery --pending 10000000 --repeat 1 --json"),
    Measurement("audit-million", 3, f"{PIPELINE} --only fired --until audit --rows 1000000"),
    Measurement("forecast-series", 2, f"{PIPELINE} --only series --rows 1000000"),
    Measurement("steady", 3, "light-scheduler bench steady --repeat 3 --json"),
    Measurement("steady-grid", 3, "light-scheduler bench steady --grid 1s --repeat 3 --json"),
    Measurement(
        "steady-grid-unstaged", 1, "light-scheduler bench steady --grid 1s --stage-ahead 0ms --repeat 1 --json"
    ),
    Measurement("instants", 2, "python benchmarks/instants.py"),
    Measurement("burst-million", 2, "light-scheduler bench burst --messages 1000000 --repeat 1 --json"),
    Measurement("fair", 2, "light-scheduler bench fair --repeat 1 --json"),
    Measurement("memory", 2, "light-scheduler bench memory --pending 1000000 --repeat 2 --json"),
    Measurement("scaling", 4, "python benchmarks/scaling.py --messages 200000"),
    Measurement("outage-worker-restarted", 4, "python benchmarks/outages.py worker-restarted --trials 5"),
    Measurement("outage-worker-lost", 4, "python benchmarks/outages.py worker-lost --trials 4"),
    Measurement("outage-rolling-restart", 4, "python benchmarks/outages.py rolling-restart --trials 5"),
    Measurement("outage-broker", 4, "python benchmarks/outages.py broker --trials 5"),
    *(Measurement(f"chaos-{seed}", 5, CHAOS.format(seed)) for seed in range(71, 76)),
    Measurement(
        "listing",
        3,
        "python benchmarks/listing.py --pending 1000000 --rate 10000 --seconds 15 --loads lists,quiet,lists",
    ),
    Measurement("pages", 8, "python benchmarks/pages.py --rate 10000 --rounds 3 --visits 3 --watch-seconds 15"),
    Measurement("outbox", 2, "python -m benchmarks.outbox --bookings 300"),
    Measurement("dialects", 1, "python benchmarks/dialects.py --rounds 5 --records 8000"),
    Measurement("dialect-lanes", 3, "python benchmarks/dialect_lane_rounds.py --rounds 30"),
    Measurement("dialect-rounds", 8, "python benchmarks/dialect_rounds.py --rounds 3"),
    Measurement("clearing", 1, "python -m benchmarks.clearing"),
    Measurement("memory-10m", 5, "light-scheduler bench memory --pending 10000000 --repeat 1 --json"),
    Measurement("steady-10m", 6, "light-scheduler bench steady --pending 10000000 --repeat 1 --json"),
    Measurement("scan-cost-10m", 7, "light-scheduler bench scan-cost --pending 10000000 --repeat 1 --json"),
    Measurement(
        "pages-10m",
        8,
        "python benchmarks/pages.py --pending 10000000 --rate 10000 --rounds 1 --visits 3 --watch-seconds 15",
    ),
    Measurement(
        "chaos-three-brokers",
        8,
        "light-scheduler bench chaos --brokers 3 --seconds 330 --messages 200000 --pause 4s --workers 3 --repeat 1"
        " --seed 41 --json",
    ),
    Measurement("pipeline", 9, f"{PIPELINE} --ingest --rows 10000 --rows 1000000"),
    Measurement("audit-10m", 16, f"{PIPELINE} --only fired --until audit --rows 10000000"),
    Measurement(
        "update-cost-50m",
        45,
        "light-scheduler bench update-cost --pending 50000000 --payload-bytes 100 --messages 200000 --repeat 1 --json",
    ),
)
"""From the most important to the longest."""
