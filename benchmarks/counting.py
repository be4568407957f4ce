"""What counting schedules costs a lane's processor, without a broker: cycles that take commands, and cycles that fire.

`python benchmarks/counting.py --spread 1440` prints JSON. The cycles are a lane's, from fetched bytes to batches and
RocksDB; rounds with and without counting take turns, so that what else the machine does falls on both. `us` is the
median of the rounds, for each schedule, over its command and its firing; `share` is of the time with counting.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any
from unittest.mock import patch

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.workload import Workload
from light_scheduler.engine import FairQueue, FiringRules, Limits
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import CommandReader
from light_scheduler.kafka.targets import Targets, TargetTopic
from light_scheduler.lanes.context import LaneContext
from light_scheduler.lanes.cycle import Cycle
from light_scheduler.model import TopicNames
from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.tables.counts import Counts, Tally
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire.dialects.named import dialect_named

NOW = 1_800_000_000_000
MINUTE = 60_000
MOST, MAX_BYTES = 5_000, 8 << 20
NAMES = TopicNames("bench")
TARGET = "bench-target"


class SpreadWorkload(Workload):
    """Schedules that are due at any time within a span."""

    span_ms = MINUTE

    def due_of(self, number: int) -> int:
        return self.due + number * 2_654_435_761 % self.span_ms


def fetched(schedules: int, minutes: int) -> list[bytes]:
    """Return the batches of commands, one for each cycle, that Kafka would send."""
    workload = SpreadWorkload(messages=schedules, payload_bytes=200, seed=1, target=TARGET, due=NOW + MINUTE)
    workload.span_ms = minutes * MINUTE
    batches = []
    for first in range(0, schedules, MOST):
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
        for number, command in enumerate(workload.commands(first, min(MOST, schedules - first))):
            builder.append(number, NOW, command.key, command.value, list(command.headers))
        batch = builder.build()
        batch[0:8] = first.to_bytes(8)
        batches.append(bytes(batch))
    return batches


@contextmanager
def not_counting() -> Iterator[None]:
    """Have schedules be in no cell for as long as this lasts."""
    with (
        patch.multiple(Tally, add=lambda *_: bytes(8), cell=lambda *_: bytes(8)),
        patch.object(Counts, "step", lambda *_: None),
    ):
        yield


def seconds(batches: list[bytes], context: LaneContext, folder: Path, until: int) -> float:
    """Carry commands out, then fire all; return the processor time of this thread."""
    table = ScheduleTable(RocksStore(folder))
    gc.collect()
    begun = thread_time()
    now = offset = 0
    for batch in batches:
        now += 1
        records = PartitionRecords(
            TopicPartition(NAMES.commands, 0), MemoryRecords(batch), (), offset, None, None, True, 0
        )
        commands = list(CommandReader(records))
        offset += len(commands)
        run_cycle(table, context, NOW + now, commands[::-1], position=offset)
    while table.pending:
        now += 1
        run_cycle(table, context, until + now, [])
    spent = thread_time() - begun
    table.close()
    return spent


def run_cycle(
    table: ScheduleTable, context: LaneContext, now: int, commands: list[Any], position: int | None = None
) -> None:
    """Carry out commands and what is due at an instant (UTC epoch ms), and apply it."""
    overlay, batches = Overlay(table), RecordBatches(now)
    cycle = Cycle(context, overlay, batches, now)
    cycle.take_all(commands)
    due = overlay.due(now, MOST, MAX_BYTES, FairQueue())
    cycle.fire_due(due, {}, MOST, MAX_BYTES)
    cycle.keep_bulk()
    if position is not None:
        cycle.moved_to(position)
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=50_000)
    parser.add_argument("--spread", type=int, default=60, help="minutes over which they are due")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    topics = Targets("127.0.0.1:1")
    own = (NAMES.commands, NAMES.history, NAMES.dead_letters, NAMES.changelog(NAMES.commands), TARGET)
    topics._known = {topic: TargetTopic(4, 1_048_588, None, 0.0) for topic in own}
    context = LaneContext(
        NAMES.commands, 0, dialect_named("native"), NAMES, Limits(1_000_000, 512), FiringRules(), topics
    )
    batches = fetched(options.schedules, options.spread)
    until = NOW + (options.spread + 1) * MINUTE
    found: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(2 * options.rounds + 1):
        name = ("with", "without")[number % 2]
        folder = tempfile.mkdtemp(prefix="counting-")
        try:
            with nullcontext() if name == "with" else not_counting():
                spent = seconds(batches, context, Path(folder), until)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if number:  # the first one warms up
            found[name].append(spent / options.schedules * 1e6)
    us = {name: round(median(rounds), 2) for name, rounds in found.items()}
    figures = {"spread_minutes": options.spread, "us": us, "share": round(1 - us["without"] / us["with"], 4)}
    rounds = {name: [round(each, 2) for each in every] for name, every in found.items()}
    print(json.dumps({"machine": machine(), "versions": versions(), **figures, "rounds_us": rounds}, indent=2))


if __name__ == "__main__":
    main()
