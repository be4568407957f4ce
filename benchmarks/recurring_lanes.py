"""What a firing of a recurring schedule costs a lane's processor, without a broker, from the due scan to RocksDB.

`python benchmarks/recurring_lanes.py` prints the processor time of the thread for each firing (us), round by round; all
schedules fire once in a round. Instructions do not depend on what else the machine does: the difference between two
numbers of rounds is what these cost.

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
from light_scheduler.lanes.context import LaneContext
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.dialects.named import dialect_named

MOST = 5_000
BEGIN = NOW // MINUTE * MINUTE
RULES = {"cron": [("schedule-cron", b"* * * * *")], "every": [("schedule-every", b"60s")]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rule", choices=RULES, default="cron")
    options = parser.parse_args()
    topics = Targets("127.0.0.1:1")
    own = (NAMES.commands, NAMES.history, NAMES.dead_letters, NAMES.changelog(NAMES.commands), TARGET)
    topics._known = {topic: TargetTopic(1, 1_048_588, None, 0.0) for topic in own}
    limits = Limits(1_000_000, 512)
    context = LaneContext(NAMES.commands, 0, dialect_named("native"), NAMES, limits, FiringRules(), topics)
    folder = tempfile.mkdtemp(prefix="recurring-lanes-")
    table = ScheduleTable(RocksStore(Path(folder)))
    headers = [("schedule-target-topic", TARGET.encode()), *RULES[options.rule]]
    for first in range(0, options.schedules, MOST):
        numbers = range(first, min(first + MOST, options.schedules))
        commands = [UnsentRecord(b"order-%012d" % n, b"x" * 200, headers, BEGIN, 0, n) for n in numbers]
        run_cycle(table, context, BEGIN, commands[::-1], numbers.stop)
    gc.collect()
    gc.disable()
    print(json.dumps([fire_all(table, context, BEGIN + turn * MINUTE) for turn in range(1, options.rounds + 1)]))
    table.close()
    shutil.rmtree(folder, ignore_errors=True)


def fire_all(table: ScheduleTable, context: LaneContext, now: int) -> float:
    """Have all schedules that are due fire; return what each took (us)."""
    begun = thread_time()
    while next(iter(table.by_due("default")))[1].progress.due <= now:
        run_cycle(table, context, now, [])
    return round((thread_time() - begun) / table.pending * 1e6, 2)


if __name__ == "__main__":
    main()
