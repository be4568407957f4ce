"""Measures the cost of a command of each dialect for a lane, relative to native in the same rounds, including framed
Avro.

    python benchmarks/dialect_lane_rounds.py --rounds 30

In a round, a new lane of each dialect takes 2,500 commands as in `dialect_lanes.py`, native first. Prints JSON: by
dialect the minimum processor time of a lane's thread per command (us), and its ratio to native's; `by_round` is the
median of the ratios within a round. The minimum of many rounds depends little on other load on the machine.
"""

from __future__ import annotations

import argparse
import gc
import json
from statistics import median

from dialect_lanes import MOST_CYCLES, SIZE, take

from light_scheduler.bench.dialects import AVRO, WRITERS
from light_scheduler.bench.machine import machine, versions

COMMANDS = SIZE * MOST_CYCLES


def played() -> dict[str, float]:
    """Play one round. Return us per command by dialect."""
    found = {}
    for name, is_framed in [*((name, False) for name in WRITERS), *((name, True) for name in AVRO)]:
        gc.collect()
        pending, taken_s = take(name, MOST_CYCLES, is_framed=is_framed)
        assert pending == COMMANDS, f"{name}: {pending} of {COMMANDS} are pending"
        found[f"{name}, framed" if is_framed else name] = taken_s / COMMANDS * 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    described = machine()
    rounds = [played() for _ in range(options.rounds)]
    least = {name: min(each[name] for each in rounds) for name in rounds[0]}
    by_round = {name: median(each[name] / each["native"] for each in rounds) for name in least}
    table = {
        name: {
            "us": round(us, 2),
            "to_native": round(us / least["native"], 3),
            "by_round": round(by_round[name], 3),
        }
        for name, us in least.items()
    }
    settings = {"rounds": options.rounds, "commands": COMMANDS}
    print(json.dumps({"machine": described, "versions": versions(), **settings, "dialects": table}, indent=2))


if __name__ == "__main__":
    main()
