"""Measures the cost of a firing for a lane's processor, without a broker, from the due scan to RocksDB.

`python benchmarks/recurring_lanes.py` prints the thread's processor time per firing (us), round by round; all schedules
fire once in a round. With `--rule once` they are one-shots: those of 5 rounds exist from the beginning. Instructions do
not depend on other load on the machine: the difference between two numbers of rounds is the cost of the additional
ones.

    PYTHONHASHSEED=0 valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \\
      python benchmarks/recurring_lanes.py --schedules 1000 --rounds 3
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import tempfile
from pathlib import Path
from time import thread_time

from counting import MINUTE, NAMES, NOW, TARGET, run_cycle

from light_scheduler.engine import FiringRules, Limits
from light_scheduler.kafka.targets import Targets, TargetTopic
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.model import Headers
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.dialects.named import dialect_named

MOST = 5_000
BEGIN = NOW // MINUTE * MINUTE
RULES = {"cron": [("schedule-cron", b"* * * * *")], "every": [("schedule-every", b"60s")], "once": []}
MOST_ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=MOST_ROUNDS)
    parser.add_argument("--cycle", type=int, default=MOST, help="firings in a cycle")
    parser.add_argument("--rule", choices=RULES, default="cron")
    options = parser.parse_args()
    topics = Targets("127.0.0.1:1")
    own = (NAMES.commands, NAMES.history, NAMES.dead_letters, NAMES.changelog(NAMES.commands), TARGET)
    topics._known = {topic: TargetTopic(1, 1_048_588, None, 0.0) for topic in own}
    limits = Limits(1_000_000, 512)
    context = LaneContext(NAMES.commands, 0, dialect_named("native"), NAMES, limits, FiringRules(), topics)
    folder = tempfile.mkdtemp(prefix="recurring-lanes-")
    table = ScheduleTable(RocksStore(Path(folder)))
    rounds = MOST_ROUNDS if options.rule == "once" else 1
    for first in range(0, rounds * options.schedules, MOST):
        numbers = range(first, min(first + MOST, rounds * options.schedules))
        commands = [
            UnsentRecord(b"order-%012d" % n, b"x" * 200, headers_of(options, n // options.schedules), BEGIN, 0, n)
            for n in numbers
        ]
        run_cycle(table, context, BEGIN, commands[::-1], numbers.stop)
    gc.collect()
    gc.disable()
    times = [fire_all(table, context, BEGIN + turn * MINUTE, options) for turn in range(1, options.rounds + 1)]
    print(json.dumps(times))
    table.close()
    shutil.rmtree(folder, ignore_errors=True)


def headers_of(options: argparse.Namespace, turn: int) -> Headers:
    """Return the headers of a command. For one-shots, `turn` is the round in which they fire."""
    at: Headers = [("schedule-at", b"%d" % (BEGIN + (turn + 1) * MINUTE))] if options.rule == "once" else []
    return [("schedule-target-topic", TARGET.encode()), *RULES[options.rule], *at]


def fire_all(table: ScheduleTable, context: LaneContext, now: int, options: argparse.Namespace) -> float:
    """Fire all due schedules. Return the time per firing (us)."""
    begun = thread_time()
    while (first := next(iter(table.rows_by_due("default")), None)) is not None:
        if table.entry_of(*first).progress.due > now:
            break
        run_cycle(table, context, now, [], most=options.cycle)
    schedules: int = options.schedules
    return round((thread_time() - begun) / schedules * 1e6, 2)


if __name__ == "__main__":
    main()
