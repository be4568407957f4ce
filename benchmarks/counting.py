"""Measures what counting schedules costs a lane's processor, without a broker: cycles that accept commands, and cycles
that fire.

`python benchmarks/counting.py --spread 1440` prints JSON. The cycles are a lane's, from fetched bytes to batches and
RocksDB. Two tables run the same cycles, alternating which goes first: one counts, the other stores nothing for counts
and does nothing for them. So other load on the machine affects both. All rounds have the same cycles, so for each cycle
there is a median over the rounds, and a median difference between its two tables. `us` is the sum of the medians, per
schedule with its command and its firing. `cost` is the sum of the differences, relative to the time without counts;
`cost_fastest` uses the fastest of each cycle instead of the median; `cost_of_rounds` are the quartiles of whole rounds.

On a machine that others use, too, processor time is not precise enough. Instructions are: run this with `--only with`,
`without` and `neither` under `valgrind --tool=cachegrind --cache-sim=no`, with PYTHONHASHSEED=0. The difference of each
of the first two to the third is the cost of its cycles.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from time import thread_time
from typing import Any, TypeVar
from unittest.mock import patch

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.engine import FairQueue, FiringRules, Limits
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import CommandReader
from light_scheduler.kafka.targets import Targets, TargetTopic
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.cycle.budget import TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.model import TopicNames
from light_scheduler.tables import Overlay, ScheduleTable, layout
from light_scheduler.tables.cell_changes import CellChanges
from light_scheduler.tables.counts import Counts
from light_scheduler.tables.due_scan import TenantScan
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.whole_schedules import WholeSchedules
from light_scheduler.wire.dialects.named import dialect_named
from light_scheduler.wire.state import decode_entry

NOW = 1_800_000_000_000
MINUTE = 60_000
MOST, MAX_BYTES = 5_000, 8 << 20
NAMES = TopicNames("bench")
TARGET = "bench-target"
T = TypeVar("T")
ONLY = {"with": [True], "without": [False], "neither": []}


class SpreadWorkload(Workload):
    """Schedules that are due at any time within a span."""

    span_ms = MINUTE

    def due_of(self, number: int) -> int:
        return self.due + number * 2_654_435_761 % self.span_ms


def fetched(schedules: int, minutes: int, most: int) -> list[bytes]:
    """Return the batches of commands, one per cycle, as fetched from Kafka."""
    workload = SpreadWorkload(messages=schedules, payloads=Payloads(200, 1), target=TARGET, due=DueTimes(NOW + MINUTE))
    workload.span_ms = minutes * MINUTE
    batches = []
    for first in range(0, schedules, most):
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
        for number, command in enumerate(workload.commands(first, min(most, schedules - first))):
            builder.append(number, NOW, command.key, command.value, list(command.headers))
        batch = builder.build()
        batch[0:8] = first.to_bytes(8)
        batches.append(bytes(batch))
    return batches


@contextmanager
def not_counting() -> Iterator[None]:
    """Within the block, add schedules to no cell, and begin their rows without one."""
    with (
        patch.multiple(CellChanges, add=lambda *_: b"", cell=lambda *_: b""),
        patch.object(TenantScan, "take", _take_uncounted),
        patch.multiple(WholeSchedules, put=_put_uncounted, remove=_remove_uncounted),
        patch.object(Counts, "step", lambda *_: None),
        patch.object(layout, "CELL_BYTES", 0),
    ):
        yield


def _put_uncounted(self: WholeSchedules, id: bytes, due: int, arrival: int, topic: str, record: bytes) -> None:
    """Same as `WholeSchedules.put`, without counting."""
    del topic
    primary = self.key_start + id
    index_key = self._index_key(due, arrival, id)
    self._changes[index_key] = record
    self._fresh.add(index_key)
    self._written[primary] = self._primaries[primary] = index_key
    self.change += 1


def _remove_uncounted(self: WholeSchedules, primary: bytes, index_key: bytes) -> None:
    """Same as `WholeSchedules.remove`, without counting."""
    self._changes[index_key] = None
    if self._fresh:
        self._fresh.discard(index_key)
    self._written[primary] = self._primaries[primary] = None
    self.change -= 1


def _take_uncounted(self: TenantScan, allowance: float) -> float:
    """Same as `TenantScan.take` for whole schedules that wait for nothing, without counting."""
    bound, unit, most, taken = self._bound, self._unit, self.most, self.taken
    primary, primaries, waits = self._primary, self._primaries, self._waits
    id_at = len(primary) + layout.TIME_BYTES
    cost = 0.0
    items = chain(self._head, self._items)
    self._head, self.is_open = [], True
    for item in items:
        key, value = item
        if key >= bound or cost >= allowance or len(taken) == most:
            self._head = [item]
            break
        assert value > layout.PROGRESS_ONLY_END
        entry = decode_entry(value)
        assert waits is None
        taken.append(entry)
        name = primary + key[id_at:]
        size = len(value)
        primaries[name] = key
        cost += size / unit if size > unit else 1.0
    return cost


class Lane:
    """A table, and this thread's processor time for each of its cycles (s)."""

    def __init__(self, context: LaneContext, most: int, *, counts: bool) -> None:
        self.folder = tempfile.mkdtemp(prefix="counting-")
        self.table = ScheduleTable(RocksStore(Path(self.folder)))
        self.seconds: list[float] = []
        self._context, self._most = context, most
        self._counting = nullcontext if counts else not_counting

    def cycle(self, commands: list[Any], now: int, position: int | None = None) -> None:
        """Carry out commands, and fire what is due."""
        with self._counting():
            begun = thread_time()
            run_cycle(self.table, self._context, now, commands, position, self._most)
            self.seconds.append(thread_time() - begun)

    def close(self) -> None:
        self.table.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_cycle(
    table: ScheduleTable,
    context: LaneContext,
    now: int,
    commands: list[Any],
    position: int | None = None,
    most: int = MOST,
) -> None:
    """Carry out commands, fire what is due at an instant (UTC epoch ms), and apply the changes."""
    overlay, batches = Overlay(table), RecordBatches(now)
    cycle = Cycle(context, overlay, batches, now)
    cycle.take_all(commands)
    due = overlay.due(now, most, MAX_BYTES, FairQueue())
    cycle.fire_due(due, {}, TurnBudget(most, MAX_BYTES))
    cycle.keep_bulk()
    if position is not None:
        cycle.moved_to(position)
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=now)


def seconds(
    batches: list[bytes], context: LaneContext, most: int, until: int, tables: Sequence[bool] = (True, False)
) -> list[list[float]]:
    """Carry out commands, then fire everything. Return the time (s) of each cycle, by table: counting or not."""
    lanes = [Lane(context, most, counts=counts) for counts in tables]
    gc.collect()
    gc.disable()
    now = offset = 0
    for batch in batches:
        now += 1
        commands = [read(batch, offset) for _ in lanes]
        offset += max(map(len, commands), default=0)
        for lane, own in in_turn([*zip(lanes, commands, strict=True)], now):
            lane.cycle(own, NOW + now, offset)
    while any(lane.table.pending for lane in lanes):
        now += 1
        for lane in in_turn(lanes, now):
            lane.cycle([], until + now)
    gc.enable()
    for lane in lanes:
        lane.close()
    return [lane.seconds for lane in lanes]


def read(batch: bytes, offset: int) -> list[Any]:
    """Return the commands of a fetched batch in reverse order."""
    records = PartitionRecords(TopicPartition(NAMES.commands, 0), MemoryRecords(batch), (), offset, None, None, True, 0)
    return list(CommandReader(records))[::-1]


def in_turn(each: list[T], number: int) -> list[T]:
    """Return two values in one order or the other."""
    return each if number % 2 else each[::-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=50_000)
    parser.add_argument("--spread", type=int, default=60, help="minutes over which they are due")
    parser.add_argument("--cycle", type=int, default=1_000, help="schedules in a cycle; a lane's has up to 5,000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=ONLY, help="one round of this table, to be measured from outside")
    options = parser.parse_args()
    found_on = machine()
    topics = Targets("127.0.0.1:1")
    own = (NAMES.commands, NAMES.history, NAMES.dead_letters, NAMES.changelog(NAMES.commands), TARGET)
    topics._known = {topic: TargetTopic(4, 1_048_588, None, 0.0) for topic in own}
    context = LaneContext(
        NAMES.commands, 0, dialect_named("native"), NAMES, Limits(1_000_000, 512), FiringRules(), topics
    )
    batches = fetched(options.schedules, options.spread, options.cycle)
    until = NOW + (options.spread + 1) * MINUTE
    if options.only is not None:
        seconds(batches, context, options.cycle, until, ONLY[options.only])
        return
    seconds(batches, context, options.cycle, until)  # warms up
    rounds = [seconds(batches, context, options.cycle, until) for _ in range(options.rounds)]
    print(
        json.dumps(
            {"machine": found_on, "versions": versions(), "spread_minutes": options.spread, "cycle": options.cycle}
            | figures(rounds, options.schedules),
            indent=2,
        )
    )


def figures(rounds: list[list[list[float]]], schedules: int) -> dict[str, object]:
    """Return the figures of the rounds, as described at the top of this file."""
    counting, without = ([*zip(*each, strict=True)] for each in zip(*rounds, strict=True))  # cycle by cycle
    differences = [median(a - b for a, b in zip(*both, strict=True)) for both in zip(counting, without, strict=True)]
    of_rounds = quantiles(sum(each) / sum(other) - 1 for each, other in rounds)
    return {
        "rounds": len(rounds),
        "us": {
            name: round(sum(map(median, each)) / schedules * 1e6, 2)
            for name, each in (("with", counting), ("without", without))
        },
        "cost": round(sum(differences) / sum(map(median, without)), 4),
        "cost_fastest": round(sum(map(min, counting)) / sum(map(min, without)) - 1, 4),
        "cost_of_rounds": [round(each, 4) for each in of_rounds],
    }


if __name__ == "__main__":
    main()
