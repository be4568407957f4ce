"""Measures the processor time of a cold start for each schedule, without a broker: from fetched batches to a closed
table.

`python benchmarks/cold_load.py` prints the processor time (us) per schedule of the thread, and of the process including
RocksDB's threads, round by round. A changelog of new schedules due within 30 days is loaded into an empty table: with
`--order arrival` ids and due times grow along the log, with `shuffled` neither does. With `--rounds 0`, only the
changelog is made, to be subtracted when instructions are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from light_scheduler.bench.workload import Payloads
from light_scheduler.kafka.batches import MAX_BATCH_BYTES
from light_scheduler.kafka.fetching import StateReader
from light_scheduler.model import Entry, Headers, Once, Progress, Schedule, Target
from light_scheduler.tables import BulkLoad, ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire.state import SCHEDULE_KIND, encode_entry, identity_of

NOW = 1_800_000_000_000
SPAN_MS = 30 * 86_400_000
PAYLOADS = Payloads(200, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--order", choices=["arrival", "shuffled"], default="arrival")
    options = parser.parse_args()
    numbers = list(range(options.schedules))
    if options.order == "shuffled":
        random.Random(1).shuffle(numbers)
    changelog = list(batches(numbers))
    gc.set_threshold(1_000_000, 20, 100)  # as in a rebuild process
    for _ in range(options.rounds):
        begun = time.thread_time(), time.process_time()
        asyncio.run(fill(changelog))
        spent = time.thread_time() - begun[0], time.process_time() - begun[1]
        thread, process = (round(each / options.schedules * 1e6, 2) for each in spent)
        print(json.dumps({"thread": thread, "process": process}))


def entry(number: int, arrival: int, schedules: int) -> Entry:
    """Return a schedule. A higher number is due later."""
    due, id = NOW + number * SPAN_MS // schedules, f"order-{number:012}"
    target = Target("bench-target", id.encode())
    return Entry(
        Schedule("default", id, 1, Once(due), target, PAYLOADS.of(number), [], 0, arrival, NOW), Progress(due, arrival)
    )


def batches(numbers: list[int]) -> Iterator[bytes]:
    """Yield the batches of a changelog in the form that a lane writes."""
    first, builder = 0, _builder()
    for offset, number in enumerate(numbers):
        each = entry(number, offset, len(numbers))
        record: tuple[int, bytes, bytes, Headers] = NOW, SCHEDULE_KIND + identity_of(each), encode_entry(each), []
        if builder.append(offset - first, *record) is None:
            yield _built(builder, first)
            first, builder = offset, _builder()
            builder.append(0, *record)
    yield _built(builder, first)


def _builder() -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, MAX_BATCH_BYTES)


def _built(builder: DefaultRecordBatchBuilder, first: int) -> bytes:
    batch = builder.build()
    batch[0:8] = first.to_bytes(8)
    return bytes(batch)


async def fill(changelog: list[bytes]) -> None:
    """Load an empty table and close it."""
    folder = tempfile.mkdtemp(prefix="cold-load-")
    table = ScheduleTable(RocksStore(Path(folder)))
    load, end = BulkLoad(table, may_block=True), 0  # as in a rebuild process
    for batch in changelog:
        memory = MemoryRecords(batch)
        first = int.from_bytes(batch[:8])
        read = StateReader(PartitionRecords(TopicPartition("c", 0), memory, (), first, None, None, True, 0))
        end += load.add(read)
        if load.is_full:
            for _ in load.write(changelog_offset=end):
                pass
    for _ in load.write(changelog_offset=end):
        pass
    await load.finish(complete_at=NOW)
    table.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
