"""Measures an audit of plain one-shots in Python: comparing what their records claim, and replaying them.

    python -m benchmarks.clearing > benchmarks/results/clearing.json

The records come from real lanes, in memory, so only the code that reads commands and judges schedules is measured.
Prints one JSON document, in microseconds of processor time per schedule: the minimum of several rounds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.costs.cost import TARGET
from benchmarks.costs.lanes import CHUNK, LIMITS, SERIES, Lane
from light_scheduler.bench.machine import machine, versions
from light_scheduler.engine import FiringRules
from light_scheduler.model import Headers, TopicNames
from light_scheduler.pipeline.audit.bounds import Bounds, Horizon
from light_scheduler.pipeline.audit.clearing import COLUMNS
from light_scheduler.pipeline.audit.commands_topics import CommandsTopics
from light_scheduler.pipeline.audit.evidence import HISTORY, Row, asked_of, encode_asked, kafka_rows
from light_scheduler.pipeline.audit.readings import ROWS, Reading
from light_scheduler.pipeline.audit.terms import Terms
from light_scheduler.pipeline.audit.verdict_table import clear_rows, judge_rows
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema
from light_scheduler.wire import dialect_named

START = 1_767_225_600_000
ROUNDS = 5
NAMES = TopicNames("bench")
RECORDS = (
    f"topic string, partition int, offset bigint, timestamp bigint, key binary, value binary, headers {HEADERS_TYPE}"
)


class MemoryLog:
    """Stores the records of each topic."""

    def __init__(self) -> None:
        self.now = START
        self.records: dict[str, list[dict[str, Any]]] = {NAMES.commands: [], NAMES.history: [], TARGET: []}

    def add(
        self,
        place: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        **_limits: object,
    ) -> None:
        topic, partition = place
        if topic in self.records:
            log = self.records[topic]
            pairs = [{"key": name, "value": text} for name, text in headers or []]
            record = {"topic": topic, "partition": partition, "offset": len(log), "timestamp": self.now}
            log.append({**record, "key": key, "value": value, "headers": pairs})

    def served(self) -> None:
        """Nothing can fail."""


def lived_through() -> MemoryLog:
    """Return the records that a lane writes for a chunk of one-shots."""
    log = MemoryLog()
    Lane(NAMES, 0, START, log).live_through([number for number in range(2 * CHUNK) if number % SERIES][:CHUNK])
    return log


def records_of(log: MemoryLog, topic: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(log.records[topic], arrow_schema(RECORDS))


def in_order(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, is_history_last: bool = False
) -> pa.RecordBatch:
    """Return columns of evidence, ordered by schedule, then by kind as clearing needs it, or with the history last."""
    table = pa.Table.from_batches(batches).select(columns).combine_chunks()
    is_behind = pc.and_(pc.equal(table["kind"], HISTORY), pa.scalar(is_history_last))
    order = [(name, "ascending") for name in ("tenant", "id", "is_behind", "kind", "offset")]
    in_order = table.append_column("is_behind", is_behind).sort_by(order)
    return in_order.select(columns).combine_chunks().to_batches()[0]


def cost(run: Callable[[], object]) -> float:
    """Return the processor time of a run (microseconds per schedule), the minimum of all rounds."""
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return round(min(spent) / CHUNK * 1e6, 1)


def main() -> None:
    """Measure, and print a document."""
    found_on = machine()
    log, native, schema = lived_through(), dialect_named("native"), arrow_schema(ROWS)
    commands = records_of(log, NAMES.commands)
    readings = {
        "commands": (Reading("commands", {NAMES.commands: "native"}, LIMITS), commands),
        "history": (Reading("history"), records_of(log, NAMES.history)),
        "messages": (Reading("messages"), records_of(log, TARGET)),
    }
    read = {name: partial(_read, *reading, schema) for name, reading in readings.items()}
    batches = [batch for reading in read.values() for batch in reading()]
    compared, evidence = in_order(batches, COLUMNS), in_order(batches, Row._fields, is_history_last=True)
    terms = Terms(FiringRules(), Bounds(0, log.now, 60_000), Horizon({TARGET: 0}, 0), CommandsTopics(NAMES.commands))
    costs = {
        **{f"reading {name}": cost(reading) for name, reading in read.items()},
        "reading commands one by one": cost(
            lambda: [encode_asked(asked_of(row, native, LIMITS)[2]) for row in kafka_rows(commands)]
        ),
        "clearing": cost(lambda: list(clear_rows(terms)(iter([compared])))),
        "replaying": cost(lambda: list(judge_rows(terms)(iter([evidence])))),
    }
    document = {"schedules": CHUNK, "microseconds": costs, "machine": found_on, "versions": versions()}
    print(json.dumps(document, indent=2))


def _read(reading: Reading, records: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    return list(reading.rows(records, schema))


if __name__ == "__main__":
    main()
