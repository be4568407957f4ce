"""Many histories, over several processes: what they covered, and which failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .history import Verdict

POINTS = {
    "0.fence sent",
    "0.fence answered",
    "0.facts",
    "0.open",
    "0.connect",
    "0.ends",
    "0.read",
    "0.load",
    "0.flush",
    "0.disconnect",
    "1.fetch",
    "1.resolve",
    "3.begin sent",
    "3.begin answered",
    "3.send sent",
    "3.send answered",
    "3.offsets sent",
    "3.offsets answered",
    "3.commit sent",
    "3.commit answered",
    "4.write begun",
    "4.write done",
    "5.abort sent",
    "5.abort answered",
    "5.stop",
    "5.confirm",
    "6.assign",
}
"""Where a process can be outside of its own memory: nothing of step 2 is, it ends where step 3 begins."""


@dataclass
class Campaign:
    """What came of histories. `failures` are seeds with what was wrong; `struck` are (kind of fault, point)."""

    histories: int = 0
    fired: int = 0
    steps: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    struck: set[tuple[str, str]] = field(default_factory=set)

    def add(self, seed: int, verdict: Verdict) -> None:
        self.histories += 1
        self.fired += verdict.fired
        self.steps += verdict.steps
        self.struck |= verdict.struck
        if verdict.violation is not None:
            self.failures[seed] = verdict.violation

    def as_json(self) -> str:
        return json.dumps({**vars(self), "struck": sorted(self.struck)})

    def include(self, document: dict[str, Any]) -> None:
        """Add what another process found."""
        self.histories += document["histories"]
        self.fired += document["fired"]
        self.steps += document["steps"]
        self.failures |= {int(seed): violation for seed, violation in document["failures"].items()}
        self.struck |= {(kind, point) for kind, point in document["struck"]}


def campaign(seeds: range, processes: int = 1, *, standing_back: bool = False) -> Campaign:
    """Play the histories of consecutive seeds in so many processes; they may leave the processors to everybody else."""
    share = -(-len(seeds) // processes)
    paths = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "simulation", "--first", str(part.start), "--histories", str(len(part))),
                *(["--stand-back"] if standing_back else []),
            ],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )
        for part in (seeds[n * share : (n + 1) * share] for n in range(processes))
    ]
    result = Campaign()
    try:
        for process in running:
            output, _ = process.communicate()
            result.include(json.loads(output))
    finally:
        for process in running:
            process.kill()
            process.wait()
    return result


def stand_back() -> None:
    """Have this session take only what others leave of the processors.

    Where Linux gives each session an equal part (autogroup), the priority of a process counts within its session only.
    """
    os.nice(19)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")
