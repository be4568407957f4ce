"""Compares the cost of an event for a worker in this tree and in another commit, in alternating rounds.

    python -m benchmarks.against f1ba380 --rounds 4 --messages 150000

Each round runs `light-scheduler bench ingest` and `bench burst` once in this tree and once in that commit's, which is
written to a temporary folder; every second round runs that commit first. Both run with the same interpreter and the
same packages. Prints JSON: for each figure the median, minimum and maximum ratio of this tree to the other commit
within a round, and the figures of all rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from light_scheduler.bench.machine import machine, versions

ROOT = Path(__file__).parents[2]
BENCH = (sys.executable, "-c", "from light_scheduler.cli import main; main()", "bench")
FIGURES = {
    "ingest": {"cpu": "worker_cpu_us_per_event", "rate": "accepted_per_s"},
    "burst": {"cpu": "worker_cpu_us_per_event", "rate": "firings_per_s"},
}
FAULTS = ("missing", "duplicate", "early")

Round = dict[str, dict[str, float]]
"""Figure -> its value in `this` tree and in the `other`."""


def write_tree(commit: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    archived = subprocess.run(("git", "-C", str(ROOT), "archive", commit), check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archived)) as files:
        files.extractall(folder, filter="tar")


def played(tree: Path, scenario: str, messages: int) -> dict[str, float]:
    """Run a scenario once in a tree. Return its figures.

    Raises RuntimeError if something was missing, duplicate or early.
    """
    command = [*BENCH, scenario, "--messages", str(messages), "--repeat", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    ran = subprocess.run(command, check=True, capture_output=True, cwd=tree, env=environment)
    figures = {name: figure["median"] for name, figure in json.loads(ran.stdout)["figures"].items()}
    if faults := {name: figures[name] for name in FAULTS if figures[name]}:
        raise RuntimeError(f"{scenario} in {tree}: {faults}")
    return {f"{scenario}_{short}": figures[name] for short, name in FIGURES[scenario].items()}


def round_of(trees: dict[str, Path], messages: int) -> Round:
    """Run both scenarios once in each tree, in this order."""
    found: Round = {}
    for scenario in FIGURES:
        for which, tree in trees.items():
            for name, value in played(tree, scenario, messages).items():
                found.setdefault(name, {})[which] = value
    return found


def ratios(rounds: list[Round]) -> dict[str, dict[str, Any]]:
    """Return the median, minimum and maximum ratio of this tree to the other within a round, by figure."""
    paired = {name: [each[name]["this"] / each[name]["other"] for each in rounds] for name in rounds[0]}
    return {
        f"{name}_ratio": {"median": statistics.median(values), "min": min(values), "max": max(values), "unit": "1"}
        for name, values in paired.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="The commit to compare with.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--messages", type=int, default=150_000, help="Commands, or firings, of a run.")
    options = parser.parse_args()
    found_on, rounds = machine(), []
    with tempfile.TemporaryDirectory(prefix="light-scheduler-against-") as folder:
        other = Path(folder)
        write_tree(options.commit, other)
        for number in range(options.rounds):
            order = (("this", ROOT), ("other", other))
            rounds.append(round_of(dict(order if number % 2 == 0 else order[::-1]), options.messages))
            print(f"round {number + 1} of {options.rounds}: {rounds[-1]}", file=sys.stderr)
    document = {"settings": vars(options), "machine": found_on, "versions": versions()}
    print(json.dumps({**document, "figures": ratios(rounds), "rounds": rounds}, indent=2))


if __name__ == "__main__":
    main()
