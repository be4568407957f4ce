"""`python -m simulation`: play many histories, or one again."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from .campaign import Campaign, stand_back
from .drawing import draw
from .mutants import MUTANTS
from .playing import play, shrunk, unchanged


def main() -> int:
    """Print a JSON document on what was played, or the trace of one history; return the exit code."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000, help="How many to play.")
    parser.add_argument("--first", type=int, default=0, help="The first one's seed; the others follow.")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="A bug to plant.")
    parser.add_argument("--seed", type=int, help="Play this one history, step by step.")
    parser.add_argument("--shrink", action="store_true", help="With --seed: make it as small as it fails.")
    parser.add_argument("--stand-back", action="store_true", help="Leave the processors to others.")
    options = parser.parse_args()
    if options.stand_back:
        stand_back()
    mutation = MUTANTS[options.mutant].plant if options.mutant else unchanged
    if options.seed is not None:
        history = draw(options.seed)
        if options.shrink:
            history = shrunk(history, mutation)
        sys.stdout.write(f"{json.dumps(asdict(history), default=repr, indent=1)}\n")
        violation = play(history, mutation, trace=print).violation
        sys.stdout.write(f"{violation or 'as it must be'}\n")
        return violation is not None
    campaign = Campaign()
    for seed in range(options.first, options.first + options.histories):
        campaign.add(seed, play(draw(seed), mutation))
        if options.mutant and campaign.failures:
            break
    sys.stdout.write(campaign.as_json() + "\n")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
