"""Makes a lane take commands of a dialect, without a broker, for counting instructions, which do not depend on the
load.

    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \\
      python benchmarks/dialect_lanes.py karafka 5

The cycles are a lane's, from fetched bytes to batches and RocksDB, with 500 commands each. The second argument is their
number, at most 5. The difference between two numbers of cycles is the cost of the additional ones. With `framed` as the
third argument, Avro is framed as with a schema registry, whose schemas are known.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from time import thread_time

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from counting import NAMES, NOW, TARGET, run_cycle

from light_scheduler.bench.dialects import WRITERS, framed, registered
from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.kafka.fetching import CommandReader
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.kafka.targets import Targets, TargetTopic
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.input.readable import Readable
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire.dialects.named import dialect_named
from light_scheduler.wire.schemas import Schemas

SIZE = 500
MOST_CYCLES = 5
DAY = 86_400_000


def fetched(dialect: str, first: int, *, is_framed: bool) -> bytes:
    """Return the batch of commands for one cycle, as fetched from Kafka."""
    write = framed(dialect) if is_framed else WRITERS[dialect]
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for number in range(SIZE):
        user: list[tuple[str, bytes | None]] = [("trace", b"0123456789abcdef")]
        due = NOW + DAY + number * 977
        key, value, headers = write(b"order-%012d" % (first + number), b"x" * 200, user, TARGET, due)
        builder.append(number, NOW, key, value, list(headers))
    batch = builder.build()
    batch[0:8] = first.to_bytes(8)
    return bytes(batch)


def known_schemas(dialect: str) -> Schemas:
    """Return the schemas that a registry has for a dialect."""
    schemas = Schemas()
    for id, schema in registered(dialect).items():
        schemas.note(id, schema)
    return schemas


def take(name: str, cycles: int, *, is_framed: bool) -> tuple[int, float]:
    """Make a new lane take commands. Return its number of schedules, and the seconds of its thread."""
    registry = SchemaRegistry(RegistryAccess("http://127.0.0.1:1"), known_schemas(name)) if is_framed else None
    dialect = dialect_named(name, None if registry is None else registry.schemas)
    readable = Readable(dialect, registry, lambda: None)
    topics = Targets("127.0.0.1:1")
    own = (NAMES.commands, NAMES.history, NAMES.dead_letters, NAMES.changelog(NAMES.commands), TARGET)
    topics._known = {topic: TargetTopic(1, 1_048_588, None, 0.0) for topic in own}
    limits = Limits(1_000_000, 512)
    context = LaneContext(NAMES.commands, 0, dialect, NAMES, limits, FiringRules(), topics)
    batches = [fetched(name, number * SIZE, is_framed=is_framed) for number in range(MOST_CYCLES)][:cycles]
    folder = tempfile.mkdtemp(prefix="dialect-lanes-")
    table = ScheduleTable(RocksStore(Path(folder)))
    started_s = thread_time()
    for number, batch in enumerate(batches):
        memory = MemoryRecords(batch)
        partition = TopicPartition(NAMES.commands, 0)
        records = PartitionRecords(partition, memory, (), number * SIZE, None, None, True, 0)
        commands = list(CommandReader(records))
        assert readable.count(iter(commands), SIZE) == SIZE
        run_cycle(table, context, NOW + number, commands[::-1], position=(number + 1) * SIZE)
    taken_s = thread_time() - started_s
    pending = table.pending
    table.close()
    shutil.rmtree(folder, ignore_errors=True)
    return pending, taken_s


def main() -> None:
    pending, _ = take(sys.argv[1], int(sys.argv[2]), is_framed=sys.argv[3:] == ["framed"])
    print(pending)


if __name__ == "__main__":
    main()
