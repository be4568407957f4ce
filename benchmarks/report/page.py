"""The generated parts of benchmarks/README.md, and their insertion between the markers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .markdown import sources
from .results import Results
from .tables import bars, dialects, failures, http, lateness, origin, peers, pipeline, speed, state, throughput

Part = Callable[[Results], str]

ABOUT: dict[str, Part] = {"origin": origin.origin, "commands": origin.commands, "hours": origin.hours}
"""Parts about the results in general, without a line that lists their sources."""

TABLES: dict[str, Part] = {
    "speed": speed.speed,
    "bars": bars.bars,
    "throughput": throughput.throughput,
    "against": throughput.against,
    "scaling": throughput.scaling,
    "fair": throughput.fair,
    "lateness": lateness.lateness,
    "recurring": lateness.recurring,
    "listing": http.listing,
    "pages": http.pages,
    "visited": http.visited,
    "outbox": http.outbox,
    "memory": state.memory,
    "scan-cost": state.scan_cost,
    "recovery": state.recovery,
    "update-cost": state.update_cost,
    "dialects": dialects.dialects,
    "jobs": pipeline.jobs,
    "long-jobs": pipeline.long_jobs,
    "clearing": pipeline.clearing,
    "worker-outages": failures.worker_outages,
    "rolling-restart": failures.rolling_restart,
    "broker-outage": failures.broker_outage,
    "peers": peers.peers,
    "node": peers.node,
    "chaos": failures.chaos,
}
"""Name of a marker -> its table."""

_MADE = re.compile(r"<!-- made: (?P<name>[a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)


def names_in(page: str) -> list[str]:
    """Return the names of all markers."""
    return [match["name"] for match in _MADE.finditer(page)]


def filled(page: str, folder: Path) -> str:
    """Return a page with each part generated from the results in a folder.

    Raises KeyError for a marker with an unknown name.
    """
    names_commits = len(origin.commits(Results(folder))) > 1

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        text = ABOUT[name](Results(folder)) if name in ABOUT else _table(TABLES[name], folder, names_commits)
        return f"<!-- made: {name} -->\n\n{text}\n\n<!-- end -->"

    return _MADE.sub(made, page)


def results_of(part: Part, folder: Path) -> set[str]:
    """Return the names of the results that a part uses."""
    results = Results(folder)
    part(results)
    return set(results.asked)


def _table(part: Part, folder: Path, names_commits: bool) -> str:
    results = Results(folder)
    text = part(results)
    return f"{text}\n\n{sources(results, names_commits=names_commits)}"
