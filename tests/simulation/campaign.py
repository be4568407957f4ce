"""Many histories, over several processes: what they covered, and which failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .history import Verdict


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


def campaign(histories: int, options: Sequence[str] = (), processes: int | None = None) -> Campaign:
    """Play histories 0, 1, 2, ... in as many processes as there are processors."""
    count = processes or len(os.sched_getaffinity(0))
    share = -(-histories // count)
    paths = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "simulation", "--first", str(n * share), "--histories", str(share), *options],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        for n in range(count)
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
