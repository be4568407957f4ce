"""Measures the cost of a command of each dialect for a whole worker, relative to native in the same minutes.

    python benchmarks/dialect_rounds.py --rounds 3 --messages 60000

Each round plays `light-scheduler bench ingest` once for every dialect, native first and Avro also framed, so that other
load on the machine affects all of them. Prints JSON: medians over the rounds of processor time per command (us) and of
commands accepted per second, and for each, the median of its ratios to native in the same round. On a machine with
other load, the processor time is more reliable.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median
from typing import Any

from light_scheduler.bench.dialects import AVRO, WRITERS
from light_scheduler.bench.machine import machine, versions

BENCH = (
    sys.executable,
    "-c",
    "from light_scheduler.cli import main; main()",
    "bench",
    "ingest",
    "--repeat",
    "1",
    "--json",
)
FIGURES = {"cpu": "worker_cpu_us_per_event", "rate": "accepted_per_s"}
FRAMED = [f"{dialect}:framed" for dialect in AVRO]
FAULTS = ("missing", "duplicate", "early")


def played(dialect: str, messages: int) -> dict[str, float]:
    """Play one round of a dialect, or of `skyuk:framed`. Return its figures.

    Raises RuntimeError if a command was lost or duplicated.
    """
    name, *framed = dialect.split(":")
    command = [*BENCH, "--dialect", name, "--messages", str(messages), *(f"--{option}" for option in framed)]
    ran = subprocess.run(command, check=True, capture_output=True)
    figures = {name: figure["median"] for name, figure in json.loads(ran.stdout)["figures"].items()}
    if faults := {name: figures[name] for name in FAULTS if figures[name]}:
        raise RuntimeError(f"{dialect}: {faults}")
    return figures


def table(rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return the medians by dialect, given rounds with figures by dialect."""
    found: dict[str, Any] = {}
    for dialect in rounds[0]:
        row: dict[str, Any] = {}
        for short, name in FIGURES.items():
            row[name] = round(median(each[dialect][name] for each in rounds), 1)
            row[f"{short}_rounds"] = [round(each[dialect][name], 1) for each in rounds]
            row[f"{short}_to_native"] = round(median(each[dialect][name] / each["native"][name] for each in rounds), 2)
        found[dialect] = row
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dialects", default=",".join([*WRITERS, *FRAMED]), help="those to compare with native")
    parser.add_argument("--messages", type=int, default=60_000, help="commands of a dialect in a round")
    options = parser.parse_args()
    described, dialects = machine(), dict.fromkeys(["native", *options.dialects.split(",")])
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(options.rounds):
        rounds.append({})
        for dialect in dialects:
            figures = rounds[-1][dialect] = played(dialect, options.messages)
            shown = ", ".join(f"{name} {figures[name]:.1f}" for name in FIGURES.values())
            print(f"round {number + 1} of {options.rounds}, {dialect}: {shown}", file=sys.stderr)
    settings = {"rounds": options.rounds, "messages": options.messages}
    print(json.dumps({"machine": described, "versions": versions(), **settings, "dialects": table(rounds)}, indent=2))


if __name__ == "__main__":
    main()
